//! A client that never reads its answer affects nobody else.

use std::io::Write;
use std::net::TcpStream;

use serde_json::json;

use crate::harness::Server;

/// How much the process prints, in MiB.
fn mebibytes() -> u64 {
    std::env::var("LASTBYTE_TEST_OUTPUT_MIB").map_or(64, |count| count.parse().unwrap())
}

/// The memory of this program, in bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_reads_stalls_neither_the_command_nor_others() {
    let length = mebibytes() << 20;
    let below = format!("output?from=0&max_bytes={length}&wait_ms=60000");
    let grown = never_read(&below, 20).await;
    eprintln!("{length} bytes printed, 20 clients that read nothing: grown by {grown} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_never_reads_stalls_neither_the_command_nor_others() {
    // Each first fills the buffers of its socket, some megabytes.
    let grown = never_read("follow?late=true", 5).await;
    eprintln!("5 followers that read nothing: grown by {grown} bytes");
}

/// Sends this request `times` times and reads nothing; returns the memory that it took.
async fn never_read(below: &str, times: usize) -> u64 {
    let server = Server::start().await;
    let length = mebibytes() << 20;
    let path = server.path_of(&format!("write-bytes {length}"), json!({})).await;
    let before = memory();
    let idle: Vec<TcpStream> = (0..times)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            let request = format!("GET {path}/{below} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let mut client = server.connect().await;
    let answer = client.post(&format!("{path}/wait"), &json!({ "exit": true })).await.json();
    assert_eq!(answer["process"]["ending"]["final_len"], length);
    let answer = client.get(&format!("{path}/output?from=-1000")).await;
    assert_eq!(answer.body.len(), 1000);
    let grown = memory().saturating_sub(before);
    // A single answer with the whole output would take more.
    assert!(grown < 20 << 20, "the server grew by {grown} bytes");
    drop(idle);
    grown
}
