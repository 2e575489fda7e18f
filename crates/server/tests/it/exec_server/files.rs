//! Operations on files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::codex::client::{Client, base64};
use crate::codex::fixture::fault;

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

async fn call(client: &mut Client, method: &str, path: &Path, more: Value) -> Value {
    let mut params = json!({"path": uri(path), "sandbox": null});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.call(&format!("fs/{method}"), params).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_written_read_and_removed() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let folder = fixture.folder.path().join("a/b");
    let file = folder.join("f");
    call(&mut client, "createDirectory", &folder, json!({})).await;
    let written =
        call(&mut client, "writeFile", &file, json!({"dataBase64": base64("long text")})).await;
    assert_eq!(written["result"], json!({}));
    call(&mut client, "writeFile", &file, json!({"dataBase64": base64("short")})).await;
    assert_eq!(fs::read(&file).unwrap(), b"short");
    let read = call(&mut client, "readFile", &file, json!({})).await;
    assert_eq!(read["result"]["dataBase64"], base64("short"));
    let metadata = call(&mut client, "getMetadata", &file, json!({})).await["result"].clone();
    assert_eq!((&metadata["isFile"], &metadata["size"]), (&json!(true), &json!(5)));
    let entries =
        call(&mut client, "readDirectory", &folder, json!({})).await["result"]["entries"].clone();
    assert_eq!(entries, json!([{"fileName": "f", "isDirectory": false, "isFile": true}]));
    let found = call(&mut client, "canonicalize", &folder.join("../b/f"), json!({})).await;
    assert_eq!(found["result"]["path"], uri(&fs::canonicalize(&file).unwrap()));
    call(&mut client, "remove", &fixture.folder.path().join("a"), json!({})).await;
    assert!(!folder.exists());
    assert_eq!(fault(&call(&mut client, "readFile", &file, json!({})).await).0, -32004);
    let removed = call(&mut client, "remove", &file, json!({})).await;
    assert_eq!(removed["result"], json!({}), "what is not there need not be removed");
    let forced = call(&mut client, "remove", &file, json!({"force": false})).await;
    assert_eq!(fault(&forced).0, -32004);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_file_is_not_opened() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let link = fixture.folder.path().join("link");
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
    for path in [Path::new("/dev/zero"), fixture.folder.path()] {
        assert_eq!(fault(&call(&mut client, "readFile", path, json!({})).await).0, -32600);
    }
    assert!(call(&mut client, "readFile", &link, json!({})).await["result"].is_object());
    let followed = call(&mut client, "readFile", &link, json!({"followSymlinks": false})).await;
    assert!(followed["error"].is_object(), "{followed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_helper_nothing_is_done_under_a_sandbox() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let file = fixture.folder.path().join("f");
    let root = json!({"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"});
    let sandbox = json!({
        "permissions": {"type": "managed", "network": "restricted",
            "file_system": {"type": "restricted", "entries": [root]}},
        "windowsSandboxLevel": "disabled",
    });
    let more = json!({"dataBase64": "", "sandbox": sandbox});
    assert_eq!(fault(&call(&mut client, "writeFile", &file, more).await).0, -32603);
    assert!(!file.exists());
}
