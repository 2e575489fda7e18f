//! The page that a monitoring system reads: every number there is, by its name.

use std::time::SystemTime;

use lastbyte_engine::{CauseKind, Engine, Phases, Refused, StatusKind};
use lastbyte_sys::OwnProgram;

use super::answers::Answers;
use super::text::MetricsText;
use crate::App;
use crate::listen::{Kind, Traffic};
use crate::verbs::refusal::start_code;

/// All of it. Blocks for the time of a look at `/proc/self`; holds no lock while it writes.
pub(crate) fn page(app: &App) -> String {
    let mut text = MetricsText::default();
    add_processes(&mut text, &app.engine);
    add_output(&mut text, &app.engine);
    add_journal(&mut text, &app.engine);
    add_answers(&mut text, &app.answers);
    add_traffic(&mut text, &app.traffic);
    text.about("Requests currently waiting for a process or following one.")
        .gauge("lastbyte_http_waits", app.waits());
    add_program(&mut text, app.started);
    text.0
}

fn add_processes(text: &mut MetricsText, engine: &Engine) {
    let Phases { running, draining, ended, lost } = engine.phases();
    let mut family =
        text.about("Processes known to the server, by phase.").gauges("lastbyte_processes");
    for (phase, count) in
        [("running", running), ("draining", draining), ("ended", ended), ("lost", lost)]
    {
        family.sample(&[("phase", phase)], count);
    }
    let counts = engine.counts();
    text.about("Processes started.").counter("lastbyte_starts_total", counts.starts());
    let mut family =
        text.about("Failed starts, by error code.").counters("lastbyte_starts_refused_total");
    for why in Refused::ALL {
        family.sample(&[("code", start_code(why).as_str())], counts.refused(why));
    }
    let mut family =
        text.about("Processes ended, by status and cause.").counters("lastbyte_endings_total");
    for status in StatusKind::ALL {
        for cause in CauseKind::ALL {
            let labels = [("status", status_word(status)), ("cause", cause_word(cause))];
            family.sample(&labels, counts.endings(status, cause));
        }
    }
    text.about("Processes forgotten, with their output.")
        .counter("lastbyte_forgotten_total", counts.forgotten());
    let mut family = text
        .about("Time from a spawn request until the command runs.")
        .histograms("lastbyte_spawn_duration_seconds");
    family.histogram(&[], &counts.spawns().snapshot());
}

/// The word of the API.
fn status_word(status: StatusKind) -> &'static str {
    match status {
        StatusKind::Exited => "exited",
        StatusKind::Signalled => "signalled",
        StatusKind::Lost => "lost",
    }
}

/// As above.
fn cause_word(cause: CauseKind) -> &'static str {
    match cause {
        CauseKind::Own => "own",
        CauseKind::TimedOut => "timed_out",
        CauseKind::Stopped => "stopped",
        CauseKind::Limit => "limit",
        CauseKind::Unknown => "unknown",
    }
}

fn add_output(text: &mut MetricsText, engine: &Engine) {
    let counts = engine.counts();
    text.about("Bytes of output written to logs.")
        .counter("lastbyte_output_stored_bytes_total", counts.stored_bytes());
    text.about("Bytes of output dropped because of a quota or a disk error.")
        .counter("lastbyte_output_dropped_bytes_total", counts.dropped_bytes());
    text.about("Disk space used by all logs.").gauge("lastbyte_log_disk_bytes", engine.disk_used());
    text.about("Disk space that all logs may use before the oldest are forgotten.")
        .gauge("lastbyte_log_disk_quota_bytes", engine.disk_quota());
}

/// Nothing where none is kept.
fn add_journal(text: &mut MetricsText, engine: &Engine) {
    let Some(state) = engine.journal_now() else { return };
    text.about("Whether all records are on disk: 0 while writing the journal fails.")
        .gauge("lastbyte_journal_ok", u8::from(state.trouble.is_none()));
    text.about("Bytes of records not yet on disk, lost if the server is killed.")
        .gauge("lastbyte_journal_waiting_bytes", state.waiting_bytes);
    text.about("Times the journal was missing and was written again.")
        .counter("lastbyte_journal_rewritten_total", state.rewritten);
}

fn add_answers(text: &mut MetricsText, answers: &Answers) {
    let routes = answers.all();
    let mut family =
        text.about("Requests answered, by route.").counters("lastbyte_http_requests_total");
    for route in &routes {
        family.sample(&[("method", route.method), ("route", route.path)], route.count());
    }
    let mut family = text
        .about("Time until the head of an answer, without requests that asked to wait.")
        .histograms("lastbyte_http_request_duration_seconds");
    for route in &routes {
        let labels = [("method", route.method), ("route", route.path)];
        route.times.iter().for_each(|times| family.histogram(&labels, &times.snapshot()));
    }
}

fn add_traffic(text: &mut MetricsText, traffic: &Traffic) {
    let mut family = text
        .about("Requests answered with an error of the native API, by error code.")
        .counters("lastbyte_http_refusals_total");
    for (code, count) in traffic.refusals() {
        family.sample(&[("code", code.as_str())], count);
    }
    text.about("Open connections.").gauge("lastbyte_connections", traffic.connections());
    text.about("Connections that may be open at the same time.")
        .gauge("lastbyte_connections_max", traffic.most(Kind::Unix));
    text.about("Connections accepted.")
        .counter("lastbyte_connections_accepted_total", traffic.accepted());
    text.about("Connections rejected because there were too many.")
        .counter("lastbyte_connections_turned_away_total", traffic.rejected());
}

/// By the names that every program is known by; what cannot be read is left out.
fn add_program(text: &mut MetricsText, started: SystemTime) {
    let mut family = text
        .about("The version of the server, as a label; always 1.")
        .gauges("lastbyte_build_info");
    family.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let since = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    text.about("Start time of the server, in seconds of unix time.")
        .gauge("process_start_time_seconds", since);
    let Ok(own) = OwnProgram::read() else { return };
    let time = own.processor_time.as_secs_f64();
    text.about("CPU time of the server, without its processes.")
        .counter("process_cpu_seconds_total", time);
    text.about("Threads of the server.").gauge("process_threads", own.threads);
    text.about("Virtual memory of the server.")
        .gauge("process_virtual_memory_bytes", own.virtual_bytes);
    text.about("Resident memory of the server.")
        .gauge("process_resident_memory_bytes", own.resident_bytes);
    text.about("Open file descriptors of the server.")
        .gauge("process_open_fds", own.open_descriptors);
    let most = own.most_descriptors.map_or("+Inf".to_owned(), |most| most.to_string());
    text.about("File descriptor limit of the server.").gauge("process_max_fds", most);
}
