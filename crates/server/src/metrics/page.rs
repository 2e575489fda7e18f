//! The page that a monitoring system reads: every number there is, by its name.

use std::time::SystemTime;

use lastbyte_engine::{CauseIs, Engine, Phases, Refused, StatusIs};
use lastbyte_sys::OwnProgram;

use super::answers::Answers;
use super::text::{Kind, Text};
use crate::App;
use crate::listen::Traffic;
use crate::verbs::refusal::code_of;

/// All of it. Blocks for the time of a look at `/proc/self`; holds no lock while it writes.
pub(crate) fn page(app: &App) -> String {
    let mut text = Text::default();
    of_processes(&mut text, &app.engine);
    of_output(&mut text, &app.engine);
    of_answers(&mut text, &app.answers);
    of_traffic(&mut text, &app.traffic);
    let help = "Requests that wait for a process or follow one at this time.";
    text.one("lastbyte_http_waits", Kind::Gauge, help, app.waits());
    of_program(&mut text, app.started);
    text.into_string()
}

fn of_processes(text: &mut Text, engine: &Engine) {
    let Phases { running, draining, ended } = engine.phases();
    let help = "Processes that are kept, by phase.";
    let mut family = text.family("lastbyte_processes", Kind::Gauge, help);
    for (phase, count) in [("running", running), ("draining", draining), ("ended", ended)] {
        family.sample(&[("phase", phase)], count);
    }
    let counts = engine.counts();
    let help = "Processes that were started, by whatever door.";
    text.one("lastbyte_starts_total", Kind::Counter, help, counts.starts());
    let help = "Starts that came to nothing, by the code of the error.";
    let mut family = text.family("lastbyte_starts_refused_total", Kind::Counter, help);
    for why in Refused::ALL {
        family.sample(&[("code", code_of(why).as_str())], counts.refused(why));
    }
    let help = "Processes that ended, by status and by whose doing it was.";
    let mut family = text.family("lastbyte_endings_total", Kind::Counter, help);
    for status in StatusIs::ALL {
        for cause in CauseIs::ALL {
            let labels = [("status", status_word(status)), ("cause", cause_word(cause))];
            family.sample(&labels, counts.endings(status, cause));
        }
    }
    let help = "Processes that were forgotten, with their output.";
    text.one("lastbyte_forgotten_total", Kind::Counter, help, counts.forgotten());
    let help = "Time from a request to a spawner to a command that runs.";
    let mut family = text.family("lastbyte_spawn_duration_seconds", Kind::Histogram, help);
    family.histogram(&[], &counts.spawns().look());
}

/// The word of the API.
fn status_word(status: StatusIs) -> &'static str {
    match status {
        StatusIs::Exited => "exited",
        StatusIs::Signalled => "signalled",
        StatusIs::Lost => "lost",
    }
}

/// As above.
fn cause_word(cause: CauseIs) -> &'static str {
    match cause {
        CauseIs::Own => "own",
        CauseIs::TimedOut => "timed_out",
        CauseIs::Stopped => "stopped",
    }
}

fn of_output(text: &mut Text, engine: &Engine) {
    let counts = engine.counts();
    let help = "Bytes of output that were taken into logs.";
    text.one("lastbyte_output_stored_bytes_total", Kind::Counter, help, counts.stored_bytes());
    let help = "Bytes of output that were dropped to stay within a quota, or for want of a disk.";
    text.one("lastbyte_output_dropped_bytes_total", Kind::Counter, help, counts.dropped_bytes());
    let help = "What all logs together take on disk.";
    text.one("lastbyte_log_disk_bytes", Kind::Gauge, help, engine.disk_used());
    let help = "What all logs together may take before the oldest are forgotten.";
    text.one("lastbyte_log_disk_quota_bytes", Kind::Gauge, help, engine.disk_quota());
}

fn of_answers(text: &mut Text, answers: &Answers) {
    let routes = answers.all();
    let help = "Requests that came to a route and were answered.";
    let mut family = text.family("lastbyte_http_requests_total", Kind::Counter, help);
    for route in &routes {
        family.sample(&[("method", route.method), ("route", route.path)], route.count());
    }
    let help = "Time to the head of an answer, without those that were asked to wait.";
    let mut family = text.family("lastbyte_http_request_duration_seconds", Kind::Histogram, help);
    for route in &routes {
        let labels = [("method", route.method), ("route", route.path)];
        route.times().iter().for_each(|times| family.histogram(&labels, &times.look()));
    }
}

fn of_traffic(text: &mut Text, traffic: &Traffic) {
    let help = "Requests that were answered with an error of the native API, by its code.";
    let mut family = text.family("lastbyte_http_refusals_total", Kind::Counter, help);
    for (code, count) in traffic.refusals() {
        family.sample(&[("code", code.as_str())], count);
    }
    let help = "Connections that are open.";
    text.one("lastbyte_connections", Kind::Gauge, help, traffic.connections());
    let help = "Connections that can be open at one time.";
    text.one("lastbyte_connections_max", Kind::Gauge, help, traffic.most_connections());
    let help = "Connections that were accepted.";
    text.one("lastbyte_connections_accepted_total", Kind::Counter, help, traffic.accepted());
    let help = "Connections that were turned away, because there were too many.";
    text.one("lastbyte_connections_turned_away_total", Kind::Counter, help, traffic.turned_away());
}

/// By the names that every program is known by; what cannot be read is left out.
fn of_program(text: &mut Text, started: SystemTime) {
    let help = "The version of the server, in its label; always 1.";
    let mut family = text.family("lastbyte_build_info", Kind::Gauge, help);
    family.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let since = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let help = "When the server was started, in seconds of unix time.";
    text.one("process_start_time_seconds", Kind::Gauge, help, since);
    let Ok(own) = OwnProgram::look() else { return };
    let help = "Processor time of the server itself, without its processes.";
    let time = own.processor_time.as_secs_f64();
    text.one("process_cpu_seconds_total", Kind::Counter, help, time);
    text.one("process_threads", Kind::Gauge, "Threads of the server.", own.threads);
    let help = "Address space of the server.";
    text.one("process_virtual_memory_bytes", Kind::Gauge, help, own.virtual_bytes);
    let help = "Memory of the server.";
    text.one("process_resident_memory_bytes", Kind::Gauge, help, own.resident_bytes);
    let help = "Descriptors that the server has open.";
    text.one("process_open_fds", Kind::Gauge, help, own.open_descriptors);
    let help = "Descriptors that the server can have open.";
    let most = own.most_descriptors.map_or("+Inf".to_owned(), |most| most.to_string());
    text.one("process_max_fds", Kind::Gauge, help, most);
}
