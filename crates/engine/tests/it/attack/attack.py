"""Tries to get out of a sandbox, one attempt after the other, and says what came of each.

    attack.py NAME=VALUE…

prints one line for each attempt: its group, its name, `ok` or the name of the error number. Each
attempt runs in a process of its own. With full access they do no harm to anybody.
"""

import ctypes, errno, os, platform, resource, signal, socket, struct, subprocess, sys

libc = ctypes.CDLL(None, use_errno=True)
given = dict(argument.split("=", 1) for argument in sys.argv[1:])
root, outside, server = given["root"], given["outside"], given["server"]
daemon, sibling = int(given["daemon"]), int(given["sibling"])
attempts = []


def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False


inherited = [number for number in range(3, 1024) if is_open(number)]


def attempt(group):
    def add(function):
        attempts.append((group, function.__name__.replace("_", " "), function))
        return function
    return add


def call(number, *arguments):
    arguments = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    answer = libc.syscall(ctypes.c_long(number), *arguments)
    if answer < 0:
        raise OSError(ctypes.get_errno(), "")
    return answer


X86 = platform.machine() == "x86_64"
# Numbers that differ between the two processors; from 424 on all are the same.
NUMBERS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "unshare": (272, 97), "setns": (308, 268),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "clone": (56, 220), "keyctl": (250, 219), "add_key": (248, 217), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "shmget": (29, 194), "mq_open": (240, 180),
    "prlimit64": (302, 261), "memfd_create": (319, 279), "kcmp": (312, 272), "fchmod": (91, 52),
    "fchmodat": (268, 53), "openat": (257, 56), "mkdirat": (258, 34), "mknodat": (259, 33),
    # The newer processor has only the newer calls.
    "chmod": (90, None), "open": (2, None), "creat": (85, None), "mkdir": (83, None), "mknod": (133, None),
}
n = {name: pair[0 if X86 else 1] for name, pair in NUMBERS.items()}

write_files, outside_metadata, inside = "write outside", "metadata outside", "workspace"
privileged_modes = "setuid and setgid"
network, processes, kernel, own = "network", "processes", "kernel", "the server's own"
ordinary = "ordinary"


def write(path):
    with open(path, "w") as file:
        file.write("x")


# --- writing outside -------------------------------------------------------------------------

@attempt(write_files)
def make_a_file():
    write(outside + "/made")


@attempt(write_files)
def append_to_a_file():
    with open(outside + "/file", "a") as file:
        file.write("")


@attempt(write_files)
def through_a_symbolic_link_in_the_workspace():
    write(root + "/link/made")


@attempt(write_files)
def through_dots():
    write(root + "/../" + os.path.basename(outside) + "/made")


@attempt(write_files)
def through_proc_self_root():
    write("/proc/self/root" + outside + "/made")


@attempt(write_files)
def through_proc_self_cwd():
    write("/proc/self/cwd/../" + os.path.basename(outside) + "/made")


@attempt(write_files)
def through_the_root_of_the_server_in_proc():
    write(f"/proc/{daemon}/root{outside}/made")


@attempt(write_files)
def through_the_cwd_of_the_server_in_proc():
    os.listdir(f"/proc/{daemon}/cwd/")


@attempt(write_files)
def through_the_root_of_a_sibling_in_proc():
    os.listdir(f"/proc/{sibling}/root/")


@attempt(write_files)
def rename_into_the_workspace():
    os.rename(outside + "/to-move", root + "/moved")


@attempt(write_files)
def rename_out_of_the_workspace():
    os.rename(root + "/to-move", outside + "/moved")


@attempt(write_files)
def hard_link_into_the_workspace():
    os.link(outside + "/file", root + "/linked")


@attempt(write_files)
def hard_link_out_of_the_workspace():
    os.link(root + "/file", outside + "/linked")


@attempt(write_files)
def truncate():
    os.truncate(outside + "/file", 0)


@attempt(write_files)
def truncate_at_open():
    os.close(os.open(outside + "/file", os.O_RDONLY | os.O_TRUNC))


@attempt(write_files)
def remove_a_file():
    os.unlink(outside + "/to-remove")


@attempt(write_files)
def make_a_folder():
    os.mkdir(outside + "/folder")


@attempt(write_files)
def remove_a_folder():
    os.rmdir(outside + "/empty")


@attempt(write_files)
def make_a_symbolic_link():
    os.symlink("x", outside + "/symlink")


@attempt(write_files)
def make_a_fifo():
    os.mkfifo(outside + "/fifo")


@attempt(write_files)
def a_shell_that_executes_another():
    again = [sys.executable, *sys.argv, "only=make a file by another"]
    again = ["sh", "-c", "exec sh -c 'exec \"$0\" \"$@\"' \"$0\" \"$@\"", *again]
    answer = subprocess.run(again, capture_output=True, text=True).stdout.split("\t")[-1].strip()
    if answer != "ok":
        raise OSError(getattr(errno, answer), "")


def make_a_file_by_another():
    write(outside + "/by-another")


@attempt(write_files)
def a_descriptor_of_the_server():
    if not inherited:
        raise OSError(errno.EBADF, "")


@attempt(write_files)
def a_setting_of_the_kernel():
    os.close(os.open("/proc/sys/vm/swappiness", os.O_WRONLY))


# --- metadata outside ------------------------------------------------------------------------

@attempt(outside_metadata)
def chmod():
    os.chmod(outside + "/file", 0o600)


@attempt(outside_metadata)
def chmod_of_an_open_file():
    os.fchmod(os.open(outside + "/file", os.O_RDONLY), 0o600)


@attempt(outside_metadata)
def chown():
    os.chown(outside + "/file", os.getuid(), os.getgid())


@attempt(outside_metadata)
def times():
    os.utime(outside + "/file", (1, 1))


@attempt(outside_metadata)
def times_of_an_open_file():
    os.utime(os.open(outside + "/file", os.O_RDONLY), (1, 1))


@attempt(outside_metadata)
def extended_attribute():
    os.setxattr(outside + "/file", "user.x", b"x")


@attempt(outside_metadata)
def flags():
    import fcntl
    file = os.open(outside + "/file", os.O_RDONLY)
    word = fcntl.ioctl(file, 0x80086601, b"\0" * 8)
    fcntl.ioctl(file, 0x40086602, word)


# --- the workspace itself --------------------------------------------------------------------

@attempt(inside)
def write_a_file():
    write(root + "/made")


@attempt(inside)
def make_and_rename_between_folders():
    os.makedirs(root + "/a")
    os.makedirs(root + "/b")
    write(root + "/a/x")
    os.rename(root + "/a/x", root + "/b/x")
    os.link(root + "/b/x", root + "/a/x")


@attempt(inside)
def chmod_in_the_workspace():
    os.chmod(root + "/file", 0o600)


@attempt(inside)
def write_to_tmp():
    import tempfile
    with tempfile.NamedTemporaryFile(dir="/tmp"):
        pass


@attempt(inside)
def semaphores_between_processes():
    import multiprocessing
    multiprocessing.Lock()


# --- setuid and setgid files in the workspace ------------------------------------------------

HERE = -100


def by_mode(name, *arguments):
    """Calls for both bits. The older calls are tried by their newer names where they are not there."""
    newer = {"chmod": "fchmodat", "open": "openat", "mkdir": "mkdirat", "mknod": "mknodat"}
    for bits in (0o4755, 0o2755):
        path = f"{root}/mode-{os.getpid()}-{bits:o}".encode()
        given = [{"mode": bits, "path": path}.get(a, a) if isinstance(a, str) else a for a in arguments]
        if n[name] is None:
            call(n[newer[name]], HERE, *given)
        else:
            call(n[name], *given)


@attempt(privileged_modes)
def a_mode_by_chmod():
    by_mode("chmod", (root + "/file").encode(), "mode")


@attempt(privileged_modes)
def a_mode_by_fchmod():
    by_mode("fchmod", os.open(root + "/file", os.O_RDONLY), "mode")


@attempt(privileged_modes)
def a_mode_by_fchmodat():
    by_mode("fchmodat", HERE, (root + "/file").encode(), "mode")


@attempt(privileged_modes)
def a_mode_by_fchmodat2():
    for bits in (0o4755, 0o2755):
        call(452, HERE, (root + "/file").encode(), bits, 0)


@attempt(privileged_modes)
def a_mode_by_open():
    by_mode("open", "path", os.O_CREAT | os.O_WRONLY, "mode")


@attempt(privileged_modes)
def a_mode_by_openat():
    by_mode("openat", HERE, "path", os.O_CREAT | os.O_WRONLY, "mode")


@attempt(privileged_modes)
def a_mode_by_creat():
    if n["creat"] is None:
        return a_mode_by_open()
    by_mode("creat", "path", "mode")


@attempt(privileged_modes)
def a_mode_by_open_without_a_name():
    by_mode("openat", HERE, root.encode(), os.O_TMPFILE | os.O_WRONLY, "mode")


@attempt(privileged_modes)
def a_mode_by_openat2():
    for bits in (0o4755, 0o2755):
        how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, bits, 0)
        call(437, HERE, f"{root}/mode-openat2-{bits:o}".encode(), how, 24)


@attempt(privileged_modes)
def a_mode_by_mkdir():
    by_mode("mkdir", "path", "mode")


@attempt(privileged_modes)
def a_mode_by_mkdirat():
    by_mode("mkdirat", HERE, "path", "mode")


@attempt(privileged_modes)
def a_mode_by_mknod():
    by_mode("mknod", "path", "mode", 0)


@attempt(privileged_modes)
def a_mode_by_mknodat():
    by_mode("mknodat", HERE, "path", "mode", 0)


# --- network ---------------------------------------------------------------------------------

@attempt(network)
def tcp_connect():
    socket.create_connection(("127.0.0.1", int(given["port"]))).close()


@attempt(network)
def tcp_listen():
    socket.create_server(("127.0.0.1", 0)).close()


@attempt(network)
def udp_send():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))


@attempt(network)
def raw_socket():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)


@attempt(network)
def packet_socket():
    socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)


@attempt(network)
def unix_socket_by_path():
    socket.socket(socket.AF_UNIX).connect(outside + "/socket")


@attempt(network)
def unix_socket_by_abstract_name():
    socket.socket(socket.AF_UNIX).connect("\0" + given["abstract"])


@attempt(network)
def unix_datagram_from_a_pair():
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"x", outside + "/datagrams")


@attempt(network)
def unix_message_from_a_pair():
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendmsg([b"x"], [], 0, outside + "/datagrams")


@attempt(network)
def netlink():
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)


@attempt(network)
def vsock():
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)


# --- other processes -------------------------------------------------------------------------

@attempt(processes)
def trace_the_server():
    call(n["ptrace"], 0x4206, daemon, 0, 0)


@attempt(processes)
def trace_a_sibling():
    call(n["ptrace"], 0x4206, sibling, 0, 0)


@attempt(processes)
def memory_of_the_server():
    os.close(os.open(f"/proc/{daemon}/mem", os.O_RDWR))


@attempt(processes)
def environment_of_the_server():
    os.close(os.open(f"/proc/{daemon}/environ", os.O_RDONLY))


@attempt(processes)
def environment_of_a_sibling():
    os.close(os.open(f"/proc/{sibling}/environ", os.O_RDONLY))


@attempt(processes)
def descriptors_of_the_server():
    os.readlink(f"/proc/{daemon}/fd/0")


@attempt(processes)
def take_a_descriptor_of_the_server():
    call(438, os.pidfd_open(daemon), 0, 0)


@attempt(processes)
def read_the_memory_of_the_server():
    vector = (ctypes.c_size_t * 2)(0, 0)
    call(n["process_vm_readv"], daemon, vector, 1, vector, 1, 0)


@attempt(processes)
def signal_the_server():
    os.kill(daemon, signal.SIGURG)


@attempt(processes)
def signal_the_server_by_descriptor():
    signal.pidfd_send_signal(os.pidfd_open(daemon), signal.SIGURG)


@attempt(processes)
def signal_a_sibling():
    os.kill(sibling, signal.SIGURG)


@attempt(processes)
def limits_of_the_server():
    limits = (ctypes.c_uint64 * 2)()
    call(n["prlimit64"], daemon, resource.RLIMIT_CORE, 0, limits)
    call(n["prlimit64"], daemon, resource.RLIMIT_CORE, limits, 0)


# --- the kernel ------------------------------------------------------------------------------

@attempt(kernel)
def user_namespace():
    call(n["unshare"], 0x10000000)


@attempt(kernel)
def user_namespace_by_clone():
    if call(n["clone"], 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)


@attempt(kernel)
def mount_namespace():
    call(n["unshare"], 0x00020000)


@attempt(kernel)
def enter_a_namespace():
    call(n["setns"], os.open("/proc/self/ns/net", os.O_RDONLY), 0)


@attempt(kernel)
def mount():
    target = (outside + "/target").encode()
    call(n["mount"], b"none", target, b"tmpfs", 0, 0)
    call(n["umount2"], target, 2)


@attempt(kernel)
def mount_anew_for_writing():
    call(n["mount"], 0, outside.encode(), 0, 0x1020, 0)


@attempt(kernel)
def mount_attributes():
    attributes = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
    call(442, -100, outside.encode(), 0, attributes, 32)


@attempt(kernel)
def unmount():
    call(n["umount2"], server.encode(), 2)


@attempt(kernel)
def clone_a_mount():
    call(428, -100, outside.encode(), 1)


@attempt(kernel)
def new_mount_interface():
    call(430, b"tmpfs", 0)


@attempt(kernel)
def chroot():
    call(n["chroot"], b"/")


@attempt(kernel)
def pivot_root():
    call(n["pivot_root"], b"/", b"/")


@attempt(kernel)
def io_uring():
    call(425, 1, ctypes.create_string_buffer(256))


@attempt(kernel)
def keyring():
    call(n["keyctl"], 0, -3, 1)


@attempt(kernel)
def add_a_key():
    call(n["add_key"], b"user", b"x", b"x", 1, -2)


@attempt(kernel)
def bpf():
    call(n["bpf"], 0, (ctypes.c_uint32 * 32)(2, 4, 8, 1), 128)


@attempt(kernel)
def performance_events():
    # A software counter of this process, for which user 0 needs nothing.
    attributes = ctypes.create_string_buffer(struct.pack("IIQ", 1, 128, 1) + b"\0" * 112)
    call(n["perf_event_open"], attributes, 0, -1, -1, 0)


@attempt(kernel)
def userfaultfd():
    call(n["userfaultfd"], 1)


@attempt(kernel)
def open_by_handle():
    handle = ctypes.create_string_buffer(struct.pack("II", 120, 0) + b"\0" * 120)
    call(n["name_to_handle_at"], -100, (outside + "/file").encode(), handle,
         ctypes.byref(ctypes.c_int()), 0)
    call(n["open_by_handle_at"], os.open(outside, os.O_RDONLY), handle, os.O_RDONLY)


@attempt(kernel)
def shared_memory():
    call(n["shmget"], 0, 4096, 0o600)


@attempt(kernel)
def message_queue():
    name = f"attack-{os.getpid()}".encode()
    call(n["mq_open"], name, os.O_CREAT | os.O_RDWR, 0o600, 0)
    libc.mq_unlink(b"/" + name)


@attempt(kernel)
def type_into_a_terminal():
    import fcntl
    ours, terminal = os.openpty()
    os.setsid()
    fcntl.ioctl(terminal, 0x540E, 0)
    fcntl.ioctl(terminal, 0x5412, b"x")


@attempt(kernel)
def clone3():
    arguments = (ctypes.c_uint64 * 11)(0, 0, 0, 0, signal.SIGCHLD)
    if call(435, arguments, 88) == 0:
        os._exit(0)


@attempt(kernel)
def a_capability():
    with open("/proc/self/status") as status:
        words = [line.split()[1] for line in status if line.startswith(("CapEff", "CapPrm", "CapAmb"))]
    if all(int(word, 16) == 0 for word in words):
        raise OSError(errno.EPERM, "")


@attempt(kernel)
def a_device():
    # One that user 0 can read without any capability, like a disk.
    paths = ["/dev/loop-control", "/dev/loop0", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/console"]
    os.close(os.open(next(filter(os.path.exists, paths)), os.O_RDONLY | os.O_NONBLOCK))


@attempt(kernel)
def move_to_another_cgroup():
    with open("/proc/mounts") as mounts:
        groups = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
    os.close(os.open(groups[0] + "/cgroup.procs", os.O_WRONLY))


# --- lastbyte's own --------------------------------------------------------------------------

@attempt(own)
def its_socket():
    socket.socket(socket.AF_UNIX).connect(server + "/socket")


@attempt(own)
def its_token():
    os.close(os.open(server + "/token", os.O_RDONLY))


@attempt(own)
def its_token_by_proc_self_root():
    os.close(os.open(f"/proc/self/root{server}/token", os.O_RDONLY))


@attempt(own)
def write_its_folder():
    write(server + "/made")


@attempt(own)
def move_its_folder_away():
    os.rename(server, server + "-moved")
    os.rename(server + "-moved", server)


@attempt(own)
def logs_of_others():
    if not os.listdir(given["state"]):
        raise OSError(errno.ENOENT, "")


# --- what has to work ------------------------------------------------------------------------

@attempt(ordinary)
def read_a_file():
    os.close(os.open(outside + "/file", os.O_RDONLY))


@attempt(ordinary)
def write_to_dev_null():
    write("/dev/null")


@attempt(ordinary)
def open_a_terminal():
    os.openpty()


@attempt(ordinary)
def a_pair_of_sockets():
    ours, theirs = socket.socketpair()
    ours.send(b"x")
    ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", 1))])
    theirs.recv(1)


@attempt(ordinary)
def a_thread_and_a_child():
    import threading
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    subprocess.run(["true"], check=True)


@attempt(ordinary)
def signal_a_child():
    child = subprocess.Popen(["sleep", "600"])
    child.kill()
    child.wait()


@attempt(ordinary)
def its_own_limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def try_it(function):
    try:
        function()
        return "ok"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def in_a_child(function):
    """The name of what came of it, by a pipe."""
    read, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write_end, try_it(function).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return answer or "died"


if "only" in given:
    print("only\tonly\t" + try_it(make_a_file_by_another))
else:
    for group, name, function in attempts:
        print(f"{group}\t{name}\t{in_a_child(function)}", flush=True)
