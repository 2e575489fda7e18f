use crate::daemon::Daemon;

#[test]
fn a_process_is_found_by_any_part_that_only_it_has() {
    let daemon = Daemon::start();
    daemon.check(
        &["show", "last"],
        125,
        "",
        "lastbyte: there is no process yet; `lastbyte start` starts one\n",
    );
    let first = daemon.result(&["start", "printf first"]);
    let second = daemon.result(&["start", "printf second"]);
    let (first, second) = (first.trim(), second.trim());
    for (given, want) in [
        (first, "first"),
        (&first[28..], "first"),
        (&second[28..], "second"),
        (&second[..35], "second"),
        ("last", "second"),
    ] {
        assert_eq!(daemon.result(&["logs", "-f", given]), want, "{given}");
    }
    let shared = &first[..4];
    let several = format!(
        "lastbyte: 2 processes have an id that begins or ends with {shared:?}: {second}, {first}\n"
    );
    daemon.check(&["logs", shared], 125, "", &several);
    let nobody = "lastbyte: no process has an id that begins or ends with \"zzz\"; `lastbyte ps` lists them\n";
    daemon.check(&["logs", "zzz"], 125, "", nobody);
}
