use std::io::{Read, Write};
use std::net::TcpListener;

use crate::bare_daemon::{Daemon, serve};
use crate::daemon;
use crate::harness::{Fixture, LASTBYTE, finish};

#[test]
fn a_server_on_a_port_needs_its_token() {
    let (daemon, url) = daemon::Daemon::on_a_port();
    let token = daemon.fixture.home.path().join("state/lastbyte/token").display().to_string();
    let id = daemon.result(&["start", "--server", &url, "--token-file", &token, "printf x"]);
    let logs = ["logs", "-f", id.trim(), "--server", &url, "--token-file", &token];
    assert_eq!(daemon.result(&logs), "x");
    let refused = daemon.finish(&["ps", "--server", &url]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(125), ""), "{refused:?}");
    let want = "lastbyte: the server needs a token; pass --token-file FILE (the file \"token\" in its \
                state directory)\n";
    assert_eq!(refused.stderr, want);
}

#[test]
fn a_token_file_that_is_none_is_refused() {
    let fixture = Fixture::new();
    for (file, want) in [
        ("/dev/urandom", "is larger than 4 KiB"),
        ("/dev/null", "is empty"),
        (&*LASTBYTE, "is larger than 4 KiB"),
    ] {
        let arguments = ["ps", "--server", "http://127.0.0.1:1", "--token-file", file];
        let finished = finish(fixture.lastbyte(&arguments));
        let want = format!("lastbyte: token file {file} {want}\n");
        assert_eq!((finished.code, finished.stderr), (Some(125), want));
    }
}

#[test]
fn another_program_is_not_taken_for_a_server() {
    let fixture = Fixture::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = ["HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "220 hello\r\n"];
    let other = std::thread::spawn(move || {
        for answer in answers {
            let mut client = listener.accept().unwrap().0;
            assert_ne!(client.read(&mut [0; 1024]).unwrap(), 0);
            client.write_all(answer.as_bytes()).unwrap();
        }
    });
    for answered in [" (it answered 404 Not Found)", ""] {
        let finished = finish(fixture.lastbyte(&["ps", "--server", &url]));
        let want = format!("lastbyte: {url} is not a lastbyte server{answered}\n");
        assert_eq!((finished.code, finished.stderr), (Some(125), want));
    }
    other.join().unwrap();
}

#[test]
fn localhost_tries_all_of_its_addresses() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let fixture = Fixture::new();
        let mut daemon = Daemon::start(serve(&fixture, &["--no-auth", "--listen", address]));
        daemon.address();
        let url = daemon.address();
        let port = url.rsplit(':').next().unwrap();
        let url = format!("http://localhost:{port}");
        let listed = finish(fixture.lastbyte(&["ps", "--server", &url]));
        assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{address}");
    }
}
