"""Endings from the feed of events: one connection, however many processes are waited for."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

from .._core import verbs
from .._core.exchange import Broken, ConnectFailed, Outage, after_failure
from .._core.sse import EventParser
from ..errors import LastbyteError, ProcessNotFound, ProtocolError, Unreachable

if TYPE_CHECKING:
    from ._client import AsyncClient

_Ending = dict[str, Any]


class Endings:
    """Waits for the endings of processes while there is somebody who waits.

    A waiter asks once for the state of its process after the feed has begun: an ending before that
    is in the answer, one after it in the feed.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._waiting: dict[str, set[asyncio.Future[_Ending]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()

    async def wait(self, id: str) -> _Ending:
        ending: asyncio.Future[_Ending] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id, set()).add(ending)
        if self._task is None or self._task.done():
            self._begun = asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(self._follow(self._begun))
        try:
            return await self._ended_or_told(id, ending)
        finally:
            self._leave(id, ending)

    async def aclose(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        self._fail(Unreachable("the client was closed"))

    async def _ended_or_told(self, id: str, ending: asyncio.Future[_Ending]) -> _Ending:
        begun: asyncio.Future[Any] = asyncio.ensure_future(self._begun.wait())
        try:
            # The feed may fail before it begins; then the waiter is told.
            await asyncio.wait({begun, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun.cancel()
        if not ending.done():
            now = await self._client._ending_now(id)
            if now is not None:
                return now
        return await ending

    def _leave(self, id: str, ending: asyncio.Future[_Ending]) -> None:
        ending.cancel()
        waiters = self._waiting.get(id)
        if waiters is not None:
            waiters.discard(ending)
            if not waiters:
                del self._waiting[id]
        if not self._waiting and self._task is not None:
            # Nobody waits: no connection is kept for that.
            self._task.cancel()
            self._task = None

    async def _follow(self, begun: asyncio.Event) -> None:
        link, last = self._client._link, None
        outage = Outage(link)
        try:
            while True:
                try:
                    stream = self._client._stream(verbs.events({}, last), EventParser())
                    async with contextlib.aclosing(stream):
                        async for message in stream:
                            outage.over()
                            if message is None:
                                # What ended while nobody listened is asked for.
                                if begun.is_set():
                                    await self._ask_all()
                                begun.set()
                            else:
                                last = message.id or last
                                await self._tell(message.event, message.data)
                    raise Broken("the server ended the feed")
                except (ConnectFailed, Broken) as error:
                    await self._client._drive(after_failure(link, outage, error))
        except LastbyteError as error:
            self._fail(error)
        except Exception as error:
            # Those who wait must not wait for ever.
            self._fail(ProtocolError(f"the feed of events has what this version does not understand: {error!r}"))

    async def _tell(self, event: str, data: str) -> None:
        if event == "gap":
            await self._ask_all()
        elif event in ("ended", "forgotten"):
            content = json.loads(data)
            id = content["process"]
            for waiter in self._waiting.get(id, ()):
                if waiter.done():
                    continue
                if event == "ended":
                    waiter.set_result(content["event"]["ending"])
                else:
                    waiter.set_exception(ProcessNotFound("process_not_found", f"the process {id} was forgotten"))

    async def _ask_all(self) -> None:
        for id in list(self._waiting):
            try:
                ending = await self._client._ending_now(id)
            except ProcessNotFound as error:
                for waiter in self._waiting.get(id, ()):
                    if not waiter.done():
                        waiter.set_exception(error)
                continue
            for waiter in self._waiting.get(id, ()) if ending else ():
                if not waiter.done():
                    waiter.set_result(ending or {})

    def _fail(self, error: LastbyteError) -> None:
        for waiters in self._waiting.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error)
