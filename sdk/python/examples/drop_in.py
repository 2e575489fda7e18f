"""The same code with subprocess and with lastbyte."""

from __future__ import annotations

import lastbyte as subprocess

done = subprocess.run(["echo", "hello"], capture_output=True, text=True, check=True)
print(done.stdout.strip())

with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
    out, _ = process.communicate("from a pipe\n")
print(out.strip())

try:
    subprocess.run(["sleep", "1000"], timeout=0.2)
except subprocess.TimeoutExpired:
    print("timed out, and nothing is left of it")
