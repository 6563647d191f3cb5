"""Controller election: the controller is the broker whose session holds the node /controller.

One transaction creates that node and raises /controller_epoch, so no two controllers share an
epoch. From then on the store refuses every write of an earlier controller.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from holdfast.broker.controller.conditions import RepeatedTask
from holdfast.broker.controller.host import Host
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.metadata.store_nodes import (
    DamagedNodeError,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)
from holdfast.coordination import (
    ConflictError,
    Create,
    Delete,
    Operation,
    SessionState,
    Set,
    StoreError,
    Watch,
    paths,
)
from holdfast.model import ControllerEpoch

RETRY_S: Final = 0.1


class Elector:
    """Campaigns for one broker."""

    def __init__(self, host: Host) -> None:
        self.controller: ControllerService | None = None
        """Set while this broker is the controller."""
        self._host = host
        self._campaign = RepeatedTask(host.loop, self._campaign_once, host.log)
        self._watches: list[Watch] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = False

    @property
    def elections(self) -> Counter[str]:
        """Leader elections of partitions in all our terms, by rule."""
        return self._host.elections

    def start(self) -> None:
        """Campaign now, and whenever there is no controller."""
        store = self._host.store
        self._watches = [
            store.watch(paths.CONTROLLER, lambda _: self._campaign.soon()),
            store.on_session(self._session_changed),
        ]
        self._campaign.soon()

    async def stop(self) -> None:
        """Resign, so that another broker need not wait for the end of our session."""
        self._is_stopped = True
        for watch in self._watches:
            watch.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._campaign.close()
        service = self.controller
        if service is None:
            return
        self._end(service)
        try:
            node = await self._host.store.get(paths.CONTROLLER)
            if node is not None and node.owner == self._host.store.session_id:
                await self._host.store.commit(Delete(paths.CONTROLLER, node.version))
        except StoreError as error:
            self._host.log.warning("could not resign as controller", error=str(error))

    def _session_changed(self, state: SessionState) -> None:
        service = self.controller
        if state is SessionState.LOST and service is not None:
            self._ended("our session is lost")
        self._campaign.soon()

    def _again_later(self) -> None:
        if not self._is_stopped:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._host.loop.call_later(RETRY_S, self._campaign.soon)

    async def _campaign_once(self) -> None:
        host = self._host
        if self._is_stopped or host.store.state is SessionState.LOST:
            return
        try:
            node, epoch = await host.store.get_many([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
            service = self.controller
            if node is not None and node.owner == host.store.session_id and service is not None:
                return
            if service is not None:
                self._ended("another broker is the controller")
            if node is not None and node.owner != host.store.session_id:
                return
            last = ControllerEpoch(0)
            if epoch is not None:
                last = decode_controller_epoch(paths.CONTROLLER_EPOCH, epoch.data)
            next_epoch = ControllerEpoch(last + 1)
            operations: list[Operation] = []
            if node is not None:
                # Ours, from a campaign whose answer was lost: campaign again for a new epoch.
                operations.append(Delete(paths.CONTROLLER, node.version))
            data = encode_controller(host.id, host.clock.wall_ms())
            operations.append(Create(paths.CONTROLLER, data, ephemeral=True))
            data = encode_controller_epoch(next_epoch)
            if epoch is None:
                operations.append(Create(paths.CONTROLLER_EPOCH, data))
            else:
                operations.append(Set(paths.CONTROLLER_EPOCH, data, epoch.version))
            written = await host.store.commit(*operations)
            await self._begin(next_epoch, written[-1].version)
        except ConflictError:
            self._campaign.soon()  # Another broker was faster.
        except (StoreError, DamagedNodeError) as error:
            host.log.warning("could not campaign for controller", error=str(error))
            self._again_later()

    async def _begin(self, epoch: ControllerEpoch, version: int) -> None:
        host = self._host
        host.log.info("controller", controller_epoch=epoch)
        if host.trace is not None:
            host.trace.became_controller(epoch)
        service = ControllerService(host, epoch, version, self._ended)
        try:
            await service.start()
        except BaseException:
            # We hold the node and do nothing: the next campaign takes it again, in a new epoch.
            service.end()
            self._again_later()
            raise
        if service.is_over:
            self._again_later()
        elif self._is_stopped:
            service.end()
        else:
            self.controller = service

    def _ended(self, reason: str) -> None:
        service = self.controller
        if service is not None:
            self._host.log.info("no longer controller", reason=reason)
            self._end(service)
        self._again_later()

    def _end(self, service: ControllerService) -> None:
        service.end()
        self.controller = None
