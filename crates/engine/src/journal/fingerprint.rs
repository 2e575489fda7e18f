//! A launch as a number: the same for the same launch, and nothing to read a secret from.

use std::ffi::OsString;
use std::fmt;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};
use uuid::Uuid;

use super::codec::Encoder;
use super::resources::encode_resources;
use super::sandbox::encode_sandbox;
use crate::launch::{
    BaseEnv, DrainRule, EnvEdit, Launch, OnDisconnect, OnQuota, OnTimeout, Program, Resources,
    Stdin, Streams, Timeouts,
};

/// What hashes are made with. It stays with the journal: in another one the same launch has
/// another fingerprint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct HashKey(pub(super) [u8; 16]);

/// Of everything in a launch that makes it this one, values of the environment included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub(super) u128);

/// A part of a launch, as a conflict of keys names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Command,
    Cwd,
    Env,
    Stdin,
    Streams,
    Timeouts,
    Stop,
    Drain,
    Quota,
    Sandbox,
    Session,
    Labels,
    Name,
    Resources,
    Secrets,
}

/// A hash of each field, in memory only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldHashes([u64; Field::ALL.len()]);

impl HashKey {
    pub(crate) fn random() -> Self {
        Self(Uuid::new_v4().into_bytes())
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "HashKey")
    }
}

impl Fingerprint {
    pub(crate) fn of(launch: &Launch, key: HashKey) -> Self {
        Self::with_fields(launch, key).0
    }

    pub(crate) fn with_fields(launch: &Launch, key: HashKey) -> (Self, FieldHashes) {
        let hash = |bytes: &[u8]| {
            let mut hasher = SipHasher24::new_with_key(&key.0);
            hasher.write(bytes);
            hasher.finish128()
        };
        let (mut encoder, mut fields, mut begin) = (Encoder::default(), [0; Field::ALL.len()], 0);
        encode(launch, &mut encoder, &mut |field, so_far| {
            let part = hash(&so_far.bytes[begin..]).h1;
            fields[field as usize] = u64::wrapping_add(fields[field as usize], part);
            begin = so_far.bytes.len();
        });
        (Self(hash(&encoder.bytes).into()), FieldHashes(fields))
    }
}

impl Field {
    const ALL: [Self; 15] = [
        Self::Command,
        Self::Cwd,
        Self::Env,
        Self::Stdin,
        Self::Streams,
        Self::Timeouts,
        Self::Stop,
        Self::Drain,
        Self::Quota,
        Self::Sandbox,
        Self::Session,
        Self::Labels,
        Self::Name,
        Self::Resources,
        Self::Secrets,
    ];
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Command => "command",
            Self::Cwd => "working directory",
            Self::Env => "variables",
            Self::Stdin => "standard input",
            Self::Streams => "terminal or streams",
            Self::Timeouts => "timeouts",
            Self::Stop => "stop signal or grace",
            Self::Drain => "drain",
            Self::Quota => "quota",
            Self::Sandbox => "sandbox",
            Self::Session => "session",
            Self::Labels => "labels",
            Self::Name => "name",
            Self::Resources => "limits",
            Self::Secrets => "secrets",
        })
    }
}

impl FieldHashes {
    pub(crate) fn differing(&self, other: &Self) -> Vec<Field> {
        Field::ALL
            .into_iter()
            .filter(|field| self.0[*field as usize] != other.0[*field as usize])
            .collect()
    }
}

/// Calls back after the bytes of each field. Names every field, so that a new one cannot be forgotten.
fn encode(launch: &Launch, to: &mut Encoder, end: &mut impl FnMut(Field, &Encoder)) {
    let Launch {
        program,
        arg0,
        cwd,
        base_env,
        env,
        forced_env,
        secrets,
        stdin,
        streams,
        timeouts: Timeouts { wall, idle },
        on_timeout,
        on_disconnect,
        stop,
        drain: DrainRule { quiet_window, limit, holders },
        quota,
        on_quota,
        sandbox,
        resources,
        session,
        key: _, // what it is looked up by
        name,
        // Only decides what the name is compared with.
        name_unique: _,
        labels,
        touches: _,         // what is told afterwards, and changes nothing of the command
        outlives_server: _, // whose it is, not what
    } = launch;
    encode_program(program, to);
    end(Field::Command, to);
    to.option(cwd.as_ref(), Encoder::os);
    end(Field::Cwd, to);
    to.list(env.iter(), encode_edit);
    to.list(forced_env.iter(), encode_pair);
    end(Field::Env, to);
    match stdin {
        Stdin::Closed => to.u8(0),
        Stdin::Open => to.u8(1),
        Stdin::Given(input) => {
            to.u8(2);
            to.bytes(input);
        }
    }
    end(Field::Stdin, to);
    encode_streams(*streams, to);
    end(Field::Streams, to);
    to.option(*wall, Encoder::duration);
    to.option(*idle, Encoder::duration);
    end(Field::Timeouts, to);
    to.i32(stop.signal.number());
    to.duration(stop.grace);
    end(Field::Stop, to);
    [*quiet_window, *limit, *holders].into_iter().for_each(|time| to.duration(time));
    end(Field::Drain, to);
    to.u64(quota.bytes());
    to.u64(quota.head());
    to.u8(match on_quota {
        OnQuota::Drop => 0,
        OnQuota::Block => 1,
    });
    end(Field::Quota, to);
    encode_sandbox(sandbox, to);
    end(Field::Sandbox, to);
    to.option(session.as_ref(), |to, session| to.text(&session.0));
    end(Field::Session, to);
    to.list(labels.iter(), |to, (name, value)| {
        to.text(name);
        to.text(value);
    });
    end(Field::Labels, to);
    match on_timeout {
        // As it was before there was another: keys of earlier journals stay good.
        OnTimeout::Stop => {}
        OnTimeout::Background => to.u8(1),
    }
    end(Field::Timeouts, to);
    if let Some(name) = name {
        to.u8(2);
        to.text(&name.0);
    }
    end(Field::Name, to);
    if *resources != Resources::default() {
        to.u8(3);
        encode_resources(resources, to);
    }
    end(Field::Resources, to);
    if !secrets.is_empty() {
        to.u8(4);
        to.list(secrets.iter(), |to, secret| {
            to.text(secret.name());
            to.bytes(secret.value());
        });
    }
    end(Field::Secrets, to);
    if let Some(arg0) = arg0 {
        to.u8(5);
        to.os(arg0);
    }
    end(Field::Command, to);
    match base_env {
        BaseEnv::Engine => {}
        BaseEnv::Empty => to.u8(6),
    }
    end(Field::Env, to);
    if let OnDisconnect::Stop { after } = on_disconnect {
        to.u8(7);
        to.duration(*after);
    }
    end(Field::Timeouts, to);
}

pub(super) fn encode_streams(streams: Streams, to: &mut Encoder) {
    match streams {
        Streams::Merged => to.u8(0),
        Streams::Split => to.u8(1),
        Streams::Pty(size) => {
            to.u8(2);
            to.i32(size.rows.into());
            to.i32(size.cols.into());
        }
    }
}

pub(super) fn encode_program(program: &Program, to: &mut Encoder) {
    match program {
        Program::Argv(argv) => {
            to.u8(0);
            to.list(argv.iter(), Encoder::os);
        }
        Program::Shell(text) => {
            to.u8(1);
            to.os(text);
        }
    }
}

fn encode_edit(to: &mut Encoder, edit: &EnvEdit) {
    match edit {
        EnvEdit::Set(name, value) => {
            to.u8(0);
            to.os(name);
            to.os(value);
        }
        EnvEdit::Unset(name) => {
            to.u8(1);
            to.os(name);
        }
    }
}

fn encode_pair(to: &mut Encoder, (name, value): &(OsString, OsString)) {
    to.os(name);
    to.os(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::sandbox::{Network, Sandbox, Workspace};
    use crate::{Key, Name, Session, StopPolicy, Touches};
    use lastbyte_output::log::Quota;
    use lastbyte_output::mask::Secret;
    use lastbyte_sys::pty::WindowSize;

    const KEY: HashKey = HashKey([1; 16]);

    fn workspace(change: fn(&mut Workspace)) -> Sandbox {
        let mut workspace = Workspace::default();
        change(&mut workspace);
        Sandbox::WorkspaceWrite(workspace)
    }

    /// Every change of this list makes another launch.
    fn changes() -> Vec<fn(&mut Launch)> {
        vec![
            |_| {},
            |launch| launch.program = Program::Shell("a b".into()),
            |launch| launch.program = Program::Argv(vec!["ab".into()]),
            |launch| launch.program = Program::Argv(vec!["".into(), "a".into(), "b".into()]),
            |launch| launch.arg0 = Some("".into()),
            |launch| launch.arg0 = Some("a".into()),
            |launch| launch.base_env = BaseEnv::Empty,
            |launch| launch.cwd = Some("".into()),
            |launch| launch.cwd = Some("/a".into()),
            |launch| launch.env = vec![EnvEdit::Unset("A".into())],
            |launch| launch.env = vec![EnvEdit::Set("A".into(), "".into())],
            |launch| launch.env = vec![EnvEdit::Set("A".into(), "secret".into())],
            |launch| launch.env = vec![EnvEdit::Set("As".into(), "ecret".into())],
            |launch| launch.forced_env = vec![("A".into(), "secret".into())],
            |launch| launch.stdin = Stdin::Open,
            |launch| launch.stdin = Stdin::Given(vec![]),
            |launch| launch.stdin = Stdin::Given(vec![0]),
            |launch| launch.streams = Streams::Split,
            |launch| launch.streams = Streams::Pty(WindowSize { rows: 2, cols: 3 }),
            |launch| launch.streams = Streams::Pty(WindowSize { rows: 3, cols: 2 }),
            |launch| launch.timeouts.wall = Some(Duration::MAX),
            |launch| launch.timeouts.idle = Some(Duration::MAX),
            |launch| launch.on_timeout = OnTimeout::Background,
            |launch| launch.stop = StopPolicy::KILL,
            |launch| launch.drain.limit = Duration::from_nanos(1),
            |launch| launch.quota = Quota::SQUEEZED,
            |launch| launch.quota = Quota::new(Quota::SQUEEZED.bytes()).unwrap(),
            |launch| launch.on_quota = OnQuota::Block,
            |launch| launch.sandbox = Sandbox::External,
            |launch| launch.sandbox = Sandbox::ReadOnly { network: Network::Off },
            |launch| launch.sandbox = Sandbox::ReadOnly { network: Network::On },
            |launch| launch.sandbox = workspace(|_| {}),
            |launch| launch.sandbox = workspace(|workspace| workspace.cwd = false),
            |launch| launch.sandbox = workspace(|workspace| workspace.slash_tmp = false),
            |launch| launch.sandbox = workspace(|workspace| workspace.tmpdir = false),
            |launch| launch.sandbox = workspace(|workspace| workspace.roots = vec!["/a".into()]),
            |launch| launch.sandbox = workspace(|workspace| workspace.protect = vec!["/a".into()]),
            |launch| launch.sandbox = workspace(|workspace| workspace.network = Network::On),
            |launch| launch.session = Some(Session("s".into())),
            |launch| launch.name = Some(Name("a".into())),
            |launch| launch.name = Some(Name("b".into())),
            |launch| launch.resources.pids = Some(1),
            |launch| launch.resources.pids = Some(2),
            |launch| launch.secrets = vec![Secret::new("A", "hunter2").unwrap()],
            |launch| launch.secrets = vec![Secret::new("A", "hunter3").unwrap()],
            |launch| launch.secrets = vec![Secret::new("B", "hunter2").unwrap()],
            |launch| launch.labels = [("a".to_owned(), "b".to_owned())].into(),
        ]
    }

    #[test]
    fn whatever_differs_makes_another_fingerprint() {
        let launch = |change: fn(&mut Launch)| {
            let mut launch = Launch::argv(["a", "b"]);
            change(&mut launch);
            Fingerprint::of(&launch, KEY)
        };
        let all: Vec<Fingerprint> = changes().into_iter().map(launch).collect();
        for (index, one) in all.iter().enumerate() {
            let same = all.iter().position(|other| other == one);
            assert_eq!(same, Some(index), "change {index}");
        }
    }

    #[test]
    fn each_change_differs_in_one_field() {
        let fields = |change: fn(&mut Launch)| {
            let mut launch = Launch::argv(["a", "b"]);
            change(&mut launch);
            Fingerprint::with_fields(&launch, KEY).1
        };
        let [same, changes @ ..] = &changes()[..] else { panic!("some") };
        let plain = fields(*same);
        assert_eq!(fields(|_| {}).differing(&plain), []);
        let found: Vec<Field> =
            changes.iter().flat_map(|change| fields(*change).differing(&plain)).collect();
        assert_eq!(found.len(), changes.len(), "one for each: {found:?}");
        assert!(Field::ALL.iter().all(|field| found.contains(field)), "{found:?}");
    }

    #[test]
    fn the_key_of_a_start_and_what_it_touches_are_no_part_of_it() {
        let plain = Launch::argv(["a"]);
        let mut other = Launch { key: Some(Key("k".into())), ..plain.clone() };
        other.touches = Some(Touches { sessions: vec![Session("c".into())], paths: vec![] });
        assert_eq!(Fingerprint::of(&plain, KEY), Fingerprint::of(&other, KEY));
        let elsewhere = Fingerprint::of(&plain, HashKey::random());
        assert_ne!(Fingerprint::of(&plain, KEY), elsewhere);
    }
}
