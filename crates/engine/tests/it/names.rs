//! A name is that of one running process.

use lastbyte_engine::{Key, Launch, Name, StartError, Verb};
use lastbyte_testkit::eventually;

use crate::fixture::{Fixture, finish};
use crate::home::{Home, close};

fn name(text: &str) -> Name {
    Name(text.into())
}

fn named(fixture: &Fixture, actions: &str) -> Launch {
    Launch { name: Some(name("web")), ..fixture.launch(actions) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_process_keeps_its_name_to_itself() {
    let fixture = Fixture::new();
    let web = fixture.start_launch(named(&fixture, "hold")).await;
    fixture.anchor.wait_for(1);
    let taken = fixture.engine.start(named(&fixture, "exit 0")).await.unwrap_err();
    let want = StartError::NameTaken { name: name("web"), id: Some(web.id()) };
    assert_eq!(taken, want);
    assert!(taken.to_string().contains(&web.id().to_string()), "{taken}");
    let other = Launch { name: Some(name("web2")), ..fixture.launch("exit 0") };
    fixture.start_launch(other).await;
    assert_eq!(fixture.engine.named(&name("web")).unwrap().id(), web.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_free_again_after_the_end_and_means_the_newest() {
    let fixture = Fixture::new();
    let first = fixture.start_launch(named(&fixture, "exit 0")).await;
    finish(&first).await;
    let second = fixture.start_launch(named(&fixture, "hold")).await;
    let found = || fixture.engine.named(&name("web")).map(|process| process.id());
    assert_eq!(found(), Some(second.id()));
    second.stop(Verb::Stop).await;
    finish(&second).await;
    eventually("the log is closed", || fixture.engine.forget(second.id()).is_ok());
    assert_eq!(found(), Some(first.id()), "the newest that is left");
    fixture.engine.forget(first.id()).unwrap();
    assert_eq!(found(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_takes_no_name() {
    let fixture = Fixture::new();
    let nothing = Launch { name: Some(name("web")), ..Launch::argv(["/no/such/program"]) };
    for _ in 0..2 {
        let refused = fixture.engine.start(nothing.clone()).await.unwrap_err();
        assert!(matches!(refused, StartError::Spawn(_)), "{refused}");
    }
    fixture.start_launch(named(&fixture, "exit 0")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_finds_the_process_that_has_the_name() {
    let fixture = Fixture::new();
    let launch = || Launch { key: Some(Key("k".into())), ..named(&fixture, "hold") };
    let first = fixture.engine.start(launch()).await.unwrap();
    let second = fixture.engine.start(launch()).await.unwrap();
    assert!(second.attached && second.process.id() == first.process.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_outlives_a_restart() {
    let home = Home::new();
    let engine = home.open();
    let launch = Launch { name: Some(name("web")), ..home.launch("exit 0") };
    let process = engine.start(launch).await.unwrap().process;
    finish(&process).await;
    close(engine).await;
    let engine = home.open();
    let found = engine.named(&name("web")).unwrap();
    assert_eq!((found.id(), &found.spec().name), (process.id(), &Some(name("web"))));
    close(engine).await;
}
