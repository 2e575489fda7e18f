//! `command/exec` with a single answer.

use serde_json::json;

use super::fixture::{Fixture, child, fault, result, run};

#[tokio::test(flavor = "multi_thread")]
async fn both_streams_and_the_code_are_in_the_answer() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let answer = client.exec(run("print out then eprint err then exit 3", json!({}))).await;
    assert_eq!(result(&answer), (3, "out", "err"));
    let more = &answer["result"];
    assert_eq!((&more["stdoutBytes"], &more["stderrBytes"]), (&json!(3), &json!(3)));
    for flag in ["timedOut", "stdoutTruncated", "stderrTruncated", "heldOpen"] {
        assert_eq!(more[flag], false, "{flag}");
    }
    assert!(more["durationMs"].is_u64() && more.get("signal").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_128_plus_its_number_even_on_a_terminal() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    for more in [json!({}), json!({"tty": true, "processId": "t"})] {
        for (signal, name) in [(9, "SIGKILL"), (15, "SIGTERM"), (11, "SIGSEGV")] {
            let answer = client.exec(run(&format!("kill-self {signal}"), more.clone())).await;
            assert_eq!(
                (result(&answer).0, &answer["result"]["signal"]),
                (128 + signal, &json!(name))
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cap_is_exact_per_stream_and_the_command_is_not_disturbed() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let both = "print abcdef then eprint uvwxyz then exit 4";
    for (cap, out, err) in
        [(0, "", ""), (5, "abcde", "uvwxy"), (6, "abcdef", "uvwxyz"), (7, "abcdef", "uvwxyz")]
    {
        let answer = client.exec(run(both, json!({"outputBytesCap": cap}))).await;
        assert_eq!(result(&answer), (4, out, err));
        assert_eq!(answer["result"]["stdoutTruncated"], cap < 6);
        assert_eq!(answer["result"]["stderrBytes"], 6);
    }
    let much = "write-bytes 3000000 then write-bytes 1048576 err";
    let answer = client.exec(run(much, json!({}))).await;
    let result = &answer["result"];
    assert_eq!(
        (&result["stdoutTruncated"], &result["stderrTruncated"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        (&result["stdoutBytes"], &result["stderrBytes"]),
        (&json!(3_000_000), &json!(1_048_576))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn output_beyond_the_quota_is_complete_with_the_cap_off() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    // 69 MB: more than a log keeps without a reader.
    let command = json!(["seq", "1", "9000000"]);
    let answer = client
        .exec(json!({"command": command, "disableOutputCap": true, "disableTimeout": true}))
        .await;
    let (code, stdout, _) = result(&answer);
    assert_eq!((code, stdout.len()), (0, 70_888_896));
    assert!(stdout.starts_with("1\n2\n") && stdout.ends_with("8999999\n9000000\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_or_cut_character_affects_only_itself() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    for (text, cap, want) in [
        (r"ab\xffcd", 100, "ab\u{fffd}cd"),
        (r"\xe6\x97\xa5\xff\xfe\x20tail", 100, "\u{65e5}\u{fffd}\u{fffd} tail"),
        (r"h\xc3\xa9\xe6\x97\xa5", 5, "h\u{e9}\u{fffd}"),
        (r"a\0b\xef\xbb\xbf", 100, "a\0b\u{feff}"),
    ] {
        let answer =
            client.exec(run(&format!("print {text}"), json!({"outputBytesCap": cap}))).await;
        assert_eq!(result(&answer).1, want);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_is_124_with_the_output_so_far() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let stubborn = "ignore 1 2 15 then trap 15 print TRAP then print before then hold";
    let answer = client.exec(run(stubborn, json!({"timeoutMs": 500}))).await;
    assert_eq!(result(&answer), (124, "before", ""));
    assert_eq!(answer["result"]["timedOut"], true);
    let at_once = client.exec(run("hold", json!({"timeoutMs": 0}))).await;
    assert_eq!(result(&at_once).0, 124);
    fixture.anchor.wait_for_at_most(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_timeout_never_expires() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let answer = client.exec(run("print done", json!({"timeoutMs": i64::MAX}))).await;
    assert_eq!(result(&answer), (0, "done", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_edited_and_some_names_are_removed() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let edits = json!({
        "NEW": "new", "PATH": null, "A=B": "c", "": "lost", "openai_federation_rule_id": "x",
        "TWO": "l1\nl2",
    });
    let show = "print-env NEW then print | then print-env PATH then print | then print-env A \
                then print | then print-env openai_federation_rule_id then print | then print-env TWO";
    let answer = client.exec(run(show, json!({"env": edits}))).await;
    assert_eq!(result(&answer).1, "new|(unset)|B=c|(unset)|l1\nl2");
}

#[tokio::test(flavor = "multi_thread")]
async fn shell_is_always_set_on_a_terminal() {
    let fixture = Fixture::with(|settings| settings.login_shell = "/of/the/user".into());
    let mut client = fixture.client().await;
    for (tty, shell, want) in [
        (true, json!(null), "/of/the/user"),
        (true, json!("/of/the/request"), "/of/the/request"),
        (true, json!(""), ""),
        (false, json!(null), "(unset)"),
    ] {
        let id = format!("{tty} {shell}");
        let mut params = run("print-env SHELL", json!({"processId": id, "tty": tty}));
        params["streamStdoutStderr"] = true.into();
        params["env"] = json!({"SHELL": shell});
        client.exec(params).await;
        assert_eq!(client.output(&id, "stdout"), want.as_bytes(), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_names_of_the_servers_environment_are_removed() {
    let fixture = Fixture::with(|settings| settings.environment.set("Node_Repl_Auth_Token", "x"));
    let mut client = fixture.client().await;
    let answer = client.exec(run("print-env Node_Repl_Auth_Token", json!({}))).await;
    assert_eq!(result(&answer).1, "(unset)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_relative_to_the_servers_own() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let own = fixture.folder.path().canonicalize().unwrap();
    std::fs::create_dir(own.join("sub")).unwrap();
    for (cwd, want) in [
        (json!(null), own.clone()),
        (json!(""), own.clone()),
        (json!("sub"), own.join("sub")),
        (json!("sub/.."), own.clone()),
        (json!("/"), "/".into()),
    ] {
        let answer = client.exec(run("print-cwd", json!({"cwd": cwd}))).await;
        assert_eq!(result(&answer).1, want.to_str().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tilde_is_the_servers_home() {
    let home = tempfile::tempdir().unwrap();
    let fixture = Fixture::with(|settings| settings.environment.set("HOME", home.path()));
    let mut client = fixture.client().await;
    let (own, home) = (fixture.folder.path(), home.path().canonicalize().unwrap());
    std::fs::create_dir(home.join("sub")).unwrap();
    std::fs::create_dir(own.join("~sub")).unwrap();
    std::fs::create_dir(own.join("a~")).unwrap();
    for (cwd, want) in [
        ("~", home.clone()),
        ("~/", home.clone()),
        ("~//sub", home.join("sub")),
        ("~sub", own.canonicalize().unwrap().join("~sub")),
        ("a~", own.canonicalize().unwrap().join("a~")),
    ] {
        let answer = client.exec(run("print-cwd", json!({"cwd": cwd}))).await;
        assert_eq!(result(&answer).1, want.to_str().unwrap(), "{cwd}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_says_why_and_frees_its_id() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let not_there = "No such file or directory (os error 2)";
    let cases = [
        (json!({"command": ["no-such-program"]}), not_there),
        (json!({"command": ["/no/such"]}), not_there),
        (json!({"command": ["/"]}), "Permission denied (os error 13)"),
        (json!({"command": [""]}), "missing program for pipe spawn"),
        (json!({"command": ["a\0b"]}), "nul byte found in provided data"),
        (json!({"command": ["true"], "env": {"A": "\0"}}), "data provided contains a nul byte"),
        (json!({"command": ["true"], "cwd": "/no/such"}), not_there),
        (json!({"command": ["true"], "cwd": "/no/such", "tty": true}), not_there),
        (json!({"command": [""], "tty": true}), "missing program for PTY spawn"),
        (
            json!({"command": ["nope"], "tty": true, "env": {"PATH": "/a\"b"}}),
            "Unable to spawn nope because:\nNo viable candidates found in PATH \"/a\\\"b\"",
        ),
    ];
    for (mut params, why) in cases {
        params["processId"] = "same".into();
        let answer = client.exec(params).await;
        assert_eq!(fault(&answer), (-32603, format!("failed to spawn command: {why}").as_str()));
    }
    let answer = client.exec(json!({"command": child("print ok"), "processId": "same"})).await;
    assert_eq!(result(&answer), (0, "ok", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_starts_with_default_signals_and_only_its_streams() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let answer = client.exec(run("report", json!({}))).await;
    let report: serde_json::Value = serde_json::from_str(result(&answer).1).unwrap();
    assert_eq!((&report["sid"], &report["pgid"]), (&report["pid"], &report["pid"]));
    assert_eq!((&report["fds"], &report["has_ctty"]), (&json!([0, 1, 2]), &json!(false)));
    assert_eq!((&report["not_default"], &report["blocked"]), (&json!([]), &json!([])));
}
