"""Many commands at a time with asyncio."""

from __future__ import annotations

import asyncio

from lastbyte import aio


async def main() -> None:
    commands = (aio.run(["echo", str(number)], stdout=aio.PIPE, text=True) for number in range(50))
    results = await asyncio.gather(*commands)
    print(sum(int(result.stdout) for result in results))

    process = await aio.create_subprocess_shell("for n in 1 2 3; do echo $n; done", stdout=aio.PIPE)
    assert process.stdout is not None
    async for line in process.stdout:
        print(line.decode().strip())
    print(await process.wait())


asyncio.run(main())
