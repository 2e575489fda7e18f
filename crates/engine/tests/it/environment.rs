//! A command's environment and working directory.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use lastbyte_engine::Errno;
use lastbyte_engine::{
    BaseEnv, EnvEdit, Environment, EnvironmentProvider, Launch, LaunchError, ProviderError,
    Settings, StartError, Started, Status, Warning,
};
use lastbyte_testkit::script;

use crate::fixture::{Fixture, finish_text};

fn set(name: &str, value: &str) -> EnvEdit {
    EnvEdit::Set(name.into(), value.into())
}

async fn prints(fixture: &Fixture, launch: Launch, want: &str) -> Started {
    let started = fixture.engine.start(launch).await.expect("it starts");
    assert_eq!(finish_text(&started.process).await, (Status::Exited(0), want.into()));
    started
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_are_applied_in_order_and_forced_values_win() {
    let fixture = Fixture::with(|settings| {
        settings.environment = [("A", "base"), ("B", "base"), ("C", "base"), ("D", "base")]
            .map(|(name, value)| (name.into(), value.into()))
            .into_iter()
            .collect();
    });
    let actions = "print-env A then print-env B then print-env C then print-env D";
    let mut launch = Launch::argv(script(actions));
    launch.env = vec![set("B", "1"), EnvEdit::Unset("C".into()), set("B", "2"), set("D", "mine")];
    launch.forced_env = vec![("D".into(), "forced".into())];
    prints(&fixture, launch, "base2(unset)forced").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_base_leaves_exactly_the_variables_of_the_launch() {
    let fixture = Fixture::new();
    let script = "tr '\\0' '\\n' < /proc/self/environ";
    let launch = Launch {
        base_env: BaseEnv::Empty,
        env: vec![set("A", "1")],
        ..Launch::argv(["/bin/sh", "-c", script])
    };
    prints(&fixture, launch, "A=1\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_sees_the_name_that_it_is_called_by() {
    let fixture = Fixture::new();
    let called = |argv: [&str; 3]| Launch { arg0: Some("other".into()), ..Launch::argv(argv) };
    prints(&fixture, called(["/bin/sh", "-c", "echo $0"]), "other\n").await;
    let missing = fixture.engine.start(called(["/no/such", "", ""])).await.unwrap_err();
    assert!(missing.to_string().contains("/no/such"), "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_has_its_id_in_its_environment() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("print-env LASTBYTE_ID");
    launch.env.push(set("LASTBYTE_ID", "mine"));
    let process = fixture.start_launch(launch).await;
    assert_eq!(finish_text(&process).await, (Status::Exited(0), process.id().to_string()));
}

#[derive(Debug)]
struct Provider(Result<&'static str, &'static str>);

impl EnvironmentProvider for Provider {
    fn environment<'a>(
        &'a self,
        own: &'a Environment,
    ) -> Pin<Box<dyn Future<Output = Result<Environment, ProviderError>> + Send + 'a>> {
        Box::pin(async move {
            let value = self.0.map_err(|text| ProviderError(text.into()))?;
            let mut environment = own.clone();
            environment.set("FROM", value);
            Ok(environment)
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_sets_the_base_and_its_failure_is_a_warning() {
    for (provider, want, warnings) in [
        (Provider(Ok("hook")), "hook", vec![]),
        (Provider(Err("broken")), "own", vec![Warning::Environment("broken".into())]),
    ] {
        let fixture = Fixture::with(|settings| {
            settings.environment.set("FROM", "own");
            settings.provider = Some(Arc::new(provider));
        });
        let started = prints(&fixture, Launch::argv(script("print-env FROM")), want).await;
        assert_eq!(started.warnings, warnings);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_launchs_directory_is_used_and_reported() {
    let fixture = Fixture::new();
    let folder = tempfile::tempdir().unwrap();
    let mut launch = fixture.launch("print-cwd");
    launch.cwd = Some(folder.path().into());
    let started = prints(&fixture, launch, folder.path().to_str().unwrap()).await;
    assert_eq!(started.process.spec().cwd, folder.path());
}

/// The directory of a launch without one, with these settings.
async fn default_cwd(change: impl FnOnce(&mut Settings)) -> Started {
    let fixture = Fixture::with(change);
    let started = fixture.engine.start(Launch::argv(script("print-cwd"))).await.expect("starts");
    let cwd = started.process.spec().cwd.to_str().unwrap().to_owned();
    assert_eq!(finish_text(&started.process).await, (Status::Exited(0), cwd));
    started
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_directory_the_first_default_that_exists_is_used() {
    let (workdir, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let configured = default_cwd(|settings| {
        settings.workdir = Some(workdir.path().into());
        settings.environment.set("HOME", home.path());
    });
    assert_eq!(configured.await.process.spec().cwd, workdir.path());
    let missing = default_cwd(|settings| {
        settings.workdir = Some("/no/such/workdir".into());
        settings.environment.set("HOME", home.path());
    });
    assert_eq!(missing.await.process.spec().cwd, home.path());
    let from_passwd = default_cwd(|settings| settings.environment.set("HOME", "/no/such/home"));
    let from_passwd = from_passwd.await;
    let home = lastbyte_sys::user::home().filter(|home| home.is_dir());
    assert_eq!(from_passwd.process.spec().cwd, home.as_deref().unwrap_or(Path::new("/")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configured_directory_is_checked_at_each_start() {
    let parent = tempfile::tempdir().unwrap();
    let workdir = parent.path().join("later");
    let fixture = Fixture::with(|settings| {
        settings.workdir = Some(workdir.clone());
        settings.environment.set("HOME", parent.path());
    });
    let home = parent.path().to_str().unwrap();
    prints(&fixture, Launch::argv(script("print-cwd")), home).await;
    std::fs::create_dir(&workdir).unwrap();
    prints(&fixture, Launch::argv(script("print-cwd")), workdir.to_str().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_cannot_be_used_is_an_error_that_names_it() {
    let fixture = Fixture::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    for (path, errno) in
        [(Path::new("/no/such/folder"), Errno::NOENT), (file.path(), Errno::NOTDIR)]
    {
        let mut launch = fixture.launch("exit 0");
        launch.cwd = Some(path.into());
        let error = fixture.engine.start(launch).await.expect_err("it cannot start");
        assert_eq!(error, StartError::Launch(LaunchError::Cwd { path: path.into(), errno }));
        assert!(error.to_string().contains(path.to_str().unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_is_found_by_the_engines_path_not_by_the_commands() {
    let fixture = Fixture::new();
    let mut launch = Launch::shell("echo $PATH");
    launch.env = vec![set("PATH", "/nowhere")];
    prints(&fixture, launch, "/nowhere\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_found_by_the_commands_own_path() {
    let fixture = Fixture::new();
    let program = lastbyte_testkit::testchild();
    let mut launch = Launch::argv(["testchild", "print", "found"]);
    launch.env = vec![set("PATH", program.parent().unwrap().to_str().unwrap())];
    prints(&fixture, launch, "found").await;
}
