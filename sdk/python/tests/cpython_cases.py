"""Which cases of CPython's own `test_subprocess` the package passes, and which are left out and why.

All cases of these classes are adopted unless they are named below. Nothing of CPython's code is here:
the cases come from the Python that runs the tests.
"""

ADOPTED_CLASSES = (
    "ProcessTestCase",
    "RunFuncTestCase",
    "POSIXProcessTestCase",
    "ContextManagerTests",
)

LEFT_OUT: dict[str, frozenset[str]] = {
    "options that a child of the server cannot have (preexec_fn, pass_fds, user, group, umask)": frozenset({
        "test_close_fds_after_preexec", "test_exception_errpipe_bad_data",
        "test_exception_errpipe_normal", "test_extra_groups", "test_extra_groups_error", "test_extra_groups_empty_list",
        "test_fork_exec", "test_fork_exec_sorted_fd_sanity_check", "test_group", "test_group_error",
        "test_pass_fds", "test_pass_fds_inheritable", "test_pass_fds_redirected", "test_preexec",
        "test_preexec_at_exit", "test_preexec_errpipe_does_not_double_close_pipes",
        "test_preexec_exception", "test_preexec_fork_failure", "test_preexec_gc_module_failure",
        "test_umask", "test_user", "test_user_error", "test_vfork_used_when_expected",
    }),
    "executable= that differs from args[0]: the API takes one name for both": frozenset({
        "test_bytes_executable", "test_cwd_with_relative_executable",
        "test_exception_bad_executable", "test_executable", "test_executable_takes_precedence",
        "test_executable_with_cwd", "test_executable_without_cwd", "test_pathlike_executable",
    }),
    "pipes have no descriptor: they read the log of the server": frozenset({
        "test_bufsize_equal_one_binary_mode", "test_bufsize_equal_one_text_mode",
        "test_pipe_cloexec", "test_pipe_cloexec_real_tools", "test_pipesize_default",
        "test_pipesizes", "test_poll", "test_select_unbuffered",
    }),
    "descriptors of this program that the child would inherit, or 0 to 2 closed or exchanged": frozenset({
        "test_close_fd_0", "test_close_fd_1", "test_close_fd_2", "test_close_fds",
        "test_close_fds_0_1", "test_close_fds_0_1_2", "test_close_fds_0_2", "test_close_fds_1_2",
        "test_close_fds_when_max_fd_is_lowered", "test_remapping_std_fds",
        "test_small_errpipe_write_fd", "test_stdout_stderr_filedes_to_closed", "test_swap_fds",
        "test_swap_std_fds_with_one_closed",
    }),
    "a child of this program: waitpid, SIGCHLD, zombies, warnings about them": frozenset({
        "test_leak_fast_process_del_killed", "test_restore_signals", "test_send_signal_race",
        "test_send_signal_race2", "test_stopped", "test_zombie_fast_process_del",
    }),
    "insides of subprocess that are replaced or looked at": frozenset({
        "test__use_vfork", "test_communicate_BrokenPipeError_stdin_close",
        "test_communicate_BrokenPipeError_stdin_close_with_timeout",
        "test_communicate_BrokenPipeError_stdin_flush",
        "test_communicate_BrokenPipeError_stdin_write", "test_repr", "test_select_unbuffered",
        "test_surrogates_error_message",
    }),
    "a value that is not UTF-8: the API has JSON": frozenset({
        "test_undecodable_env",
    }),
    "the server queues input, so a write can succeed after the reader has gone": frozenset({
        "test_broken_pipe_cleanup",
    }),
    "slow, and covered by the package's own tests": frozenset({
        "test_check_output_timeout",
    }),
}  # fmt: skip
