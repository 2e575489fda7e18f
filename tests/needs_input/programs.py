"""Programs that wait for input, programs that do not, and what is expected of each."""

import typing


class Program(typing.NamedTuple):
    """What to run, on what, and the answer: `terminal`, `pipe`, `secret`, `no` or `unknown`."""

    command: str
    expected: str
    # If it differs: for a server that runs as an ordinary user.
    as_user: str | None = None
    on: str = "terminal"
    # What has to be installed, if it is not the first word.
    needs: str | None = None


def of_terminal(command, expected="terminal", as_user=None, needs=None):
    return Program(command, expected, as_user, "terminal", needs)


def of_pipe(command, expected="pipe", needs=None):
    return Program(command, expected, None, "pipe", needs)


SERVER = "require('http').createServer().listen(0,'127.0.0.1')"
SSH = "ssh -F none -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=ask -p"
RESTARTED = (
    "(for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.06; done; kill -STOP $$; kill -CONT $$) & "
    "exec python3 -c 'import select; p = select.poll(); p.register(0, 1); p.poll()'"
)

PROGRAMS = [
    # Prompts and shells.
    of_terminal("read -r line", needs="sh"),
    of_terminal("bash --norc"),
    of_terminal("bash -c 'read -p \"more? \" line'"),
    of_terminal("bash -c 'read -s line'", "secret"),
    of_terminal("bash -c 'read -t 60 -n 1 key'"),
    of_terminal("bash -c 'select x in a b; do break; done'"),
    of_terminal("zsh -f"),
    of_terminal("dash -c 'printf \"Continue? [Y/n] \"; read answer'"),
    of_terminal("python3 -q"),
    of_terminal("python3 -c 'input(\"name? \")'"),
    of_terminal("python3 -c 'import getpass; getpass.getpass()'", "secret"),
    of_terminal("python3 -c 'import asyncio, sys\nasync def main():\n loop = asyncio.get_running_loop()\n"
                " loop.add_reader(0, sys.stdin.readline)\n await asyncio.sleep(60)\nasyncio.run(main())'"),
    of_terminal("python3 -c 'import sys, threading, time\n"
                "threading.Thread(target=sys.stdin.readline).start(); time.sleep(60)'"),
    of_terminal("python3 -c 'import select; select.select([0], [], [], 60)'"),
    of_terminal("python3 -m asyncio"),
    of_terminal("node"),
    of_terminal("node -e 'process.stdin.setRawMode(true); process.stdin.on(\"data\", () => {})'"),
    of_terminal("perl -e 'print \"ok? \"; <STDIN>'"),
    of_terminal("ruby -e 'print \"ok? \"; gets'"),
    of_terminal("php -r 'fgets(STDIN);'"),
    of_terminal("lua5.4"),
    of_terminal("tclsh"),
    of_terminal("jshell"),
    of_terminal("expect -c 'expect_user -timeout 60 x'"),
    of_terminal("dc"),
    of_terminal("bc -q"),
    of_terminal("ed"),
    of_terminal("gdb -q"),
    of_terminal("sqlite3"),
    of_terminal("awk '{ print }'"),
    of_terminal("cat"),
    of_terminal("cat </dev/tty", needs="cat"),
    of_terminal("sort"),
    of_terminal("xargs echo"),
    of_terminal("rm -i file", needs="rm"),
    of_terminal("cp -i file other", needs="cp"),
    of_terminal("sleep 1000 & cat", needs="cat"),
    of_terminal("sleep 0.3; seq 3 | cat; read -r line", needs="seq"),
    # Stopped and continued within poll, before it is silent: the kernel then shows another call.
    of_terminal(RESTARTED, needs="python3"),
    of_pipe(RESTARTED, needs="python3"),
    # Whole screens.
    of_terminal("vim -u NONE"),
    of_terminal("vim -u NONE -c 'call getchar()'"),
    of_terminal("nano file"),
    of_terminal("less file"),
    of_terminal("seq 1000 | less", needs="less"),
    of_terminal("more long"),
    of_terminal("man -P less sh", needs="less"),
    of_terminal("git -C repository log", needs="git"),
    of_terminal("git -C repository add -p", needs="git"),
    of_terminal("git -C repository commit --allow-empty -e", needs="vim"),
    of_terminal("mc"),
    of_terminal("dialog --yesno sure? 8 20"),
    of_terminal("whiptail --inputbox name? 8 20"),
    of_terminal("seq 10 | fzf", needs="fzf"),
    of_terminal("top"),
    # Its server, which listens on a socket, reads the terminal.
    of_terminal("tmux -L needs-input -f /dev/null new", "no", needs="tmux"),
    of_terminal("script -q -c cat /dev/null", needs="script"),
    # Passwords, and programs of another user.
    of_terminal("git -c credential.helper= ls-remote http://x@127.0.0.1:$REFUSING/r.git", "secret", needs="git"),
    of_terminal("git -c credential.helper= ls-remote http://127.0.0.1:$REFUSING/r.git", needs="git"),
    of_terminal(f"{SSH} $SSHD 127.0.0.1", needs="sshd"),
    of_terminal("ssh-keygen -f key -t ed25519", "secret"),
    of_terminal("gpg --symmetric --pinentry-mode loopback file", "secret"),
    of_terminal("openssl genrsa -aes128 2048", "secret"),
    of_terminal("su nobody -s /bin/sh -c true", "no", "secret", needs="su"),
    of_terminal("su -s /bin/cat nobody", "terminal", "secret", needs="su"),
    of_terminal("sudo -k; sudo -S -p pw: true", "no", "secret", needs="sudo"),
    of_terminal("passwd", "secret"),
    # Pipes.
    of_pipe("cat"),
    of_pipe("read -r line", needs="sh"),
    of_pipe("python3 -c 'input()'"),
    of_pipe("python3 -i"),
    of_pipe("node"),
    of_pipe("node -e 'process.stdin.on(\"data\", () => {})'"),
    of_pipe("bash"),
    of_pipe("sqlite3"),
    of_pipe("perl -ne 'print'"),
    of_pipe("xargs -n 1 echo"),
    of_pipe("sleep 1000 & cat <&0", needs="cat"),
    of_pipe("tee copy"),
    of_pipe("ssh-keygen -y -f /dev/stdin", "pipe"),
    of_pipe("java Reader.java", needs="java"),
    # Not.
    of_terminal("sleep 1000", "no"),
    of_pipe("sleep 1000", "no"),
    of_terminal("tail -f file", "no"),
    of_pipe("tail -f file", "no"),
    of_terminal("sleep 1000 | cat", "no", needs="cat"),
    of_terminal("python3 -m http.server -b 127.0.0.1 0", "no"),
    of_terminal(f"node -e \"{SERVER}\"", "no"),
    of_terminal(f"node -e \"{SERVER}; process.stdin.resume()\"", "no"),
    of_terminal("bash -c 'sleep 1000; read x'", "no"),
    of_terminal("sh -c 'while :; do :; done'", "no"),
    of_terminal("yes >/dev/null", "no"),
    of_terminal("watch true", "no"),
    of_terminal("bash -ic 'sleep 1000'", "no", needs="bash"),
    of_terminal("cat fifo", "no"),
    of_terminal("nc -l 127.0.0.1 0 </dev/null", "no", needs="nc"),
    of_terminal("perl -e 'sleep 1 while 1'", "no"),
    of_terminal("java Sleeper.java", "no", needs="java"),
    of_terminal("stty -echo; sleep 1000", "no", needs="stty"),
    of_terminal("bash -c 'cat & wait'", "no"),
]
