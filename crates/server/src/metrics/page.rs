//! The page that a monitoring system reads: every number there is, by its name.

use std::time::SystemTime;

use lastbyte_engine::{CauseIs, Engine, Phases, Refused, StatusIs};
use lastbyte_sys::OwnProgram;

use super::answers::Answers;
use super::text::Text;
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
    text.about("Requests that wait for a process or follow one at this time.")
        .gauge("lastbyte_http_waits", app.waits());
    of_program(&mut text, app.started);
    text.into_string()
}

fn of_processes(text: &mut Text, engine: &Engine) {
    let Phases { running, draining, ended } = engine.phases();
    let mut family = text.about("Processes that are kept, by phase.").gauges("lastbyte_processes");
    for (phase, count) in [("running", running), ("draining", draining), ("ended", ended)] {
        family.sample(&[("phase", phase)], count);
    }
    let counts = engine.counts();
    text.about("Processes that were started, by whatever door.")
        .counter("lastbyte_starts_total", counts.starts());
    let mut family = text
        .about("Starts that came to nothing, by the code of the error.")
        .counters("lastbyte_starts_refused_total");
    for why in Refused::ALL {
        family.sample(&[("code", code_of(why).as_str())], counts.refused(why));
    }
    let mut family = text
        .about("Processes that ended, by status and by whose doing it was.")
        .counters("lastbyte_endings_total");
    for status in StatusIs::ALL {
        for cause in CauseIs::ALL {
            let labels = [("status", status_word(status)), ("cause", cause_word(cause))];
            family.sample(&labels, counts.endings(status, cause));
        }
    }
    text.about("Processes that were forgotten, with their output.")
        .counter("lastbyte_forgotten_total", counts.forgotten());
    let mut family = text
        .about("Time from a request to a spawner to a command that runs.")
        .histograms("lastbyte_spawn_duration_seconds");
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
    text.about("Bytes of output that were taken into logs.")
        .counter("lastbyte_output_stored_bytes_total", counts.stored_bytes());
    text.about("Bytes of output that were dropped to stay within a quota, or for want of a disk.")
        .counter("lastbyte_output_dropped_bytes_total", counts.dropped_bytes());
    text.about("What all logs together take on disk.")
        .gauge("lastbyte_log_disk_bytes", engine.disk_used());
    text.about("What all logs together may take before the oldest are forgotten.")
        .gauge("lastbyte_log_disk_quota_bytes", engine.disk_quota());
}

fn of_answers(text: &mut Text, answers: &Answers) {
    let routes = answers.all();
    let mut family = text
        .about("Requests that came to a route and were answered.")
        .counters("lastbyte_http_requests_total");
    for route in &routes {
        family.sample(&[("method", route.method), ("route", route.path)], route.count());
    }
    let mut family = text
        .about("Time to the head of an answer, without those that were asked to wait.")
        .histograms("lastbyte_http_request_duration_seconds");
    for route in &routes {
        let labels = [("method", route.method), ("route", route.path)];
        route.times().iter().for_each(|times| family.histogram(&labels, &times.look()));
    }
}

fn of_traffic(text: &mut Text, traffic: &Traffic) {
    let mut family = text
        .about("Requests that were answered with an error of the native API, by its code.")
        .counters("lastbyte_http_refusals_total");
    for (code, count) in traffic.refusals() {
        family.sample(&[("code", code.as_str())], count);
    }
    text.about("Connections that are open.").gauge("lastbyte_connections", traffic.connections());
    text.about("Connections that can be open at one time.")
        .gauge("lastbyte_connections_max", traffic.most_connections());
    text.about("Connections that were accepted.")
        .counter("lastbyte_connections_accepted_total", traffic.accepted());
    text.about("Connections that were turned away, because there were too many.")
        .counter("lastbyte_connections_turned_away_total", traffic.turned_away());
}

/// By the names that every program is known by; what cannot be read is left out.
fn of_program(text: &mut Text, started: SystemTime) {
    let mut family = text
        .about("The version of the server, in its label; always 1.")
        .gauges("lastbyte_build_info");
    family.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let since = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    text.about("When the server was started, in seconds of unix time.")
        .gauge("process_start_time_seconds", since);
    let Ok(own) = OwnProgram::look() else { return };
    let time = own.processor_time.as_secs_f64();
    text.about("Processor time of the server itself, without its processes.")
        .counter("process_cpu_seconds_total", time);
    text.about("Threads of the server.").gauge("process_threads", own.threads);
    text.about("Address space of the server.")
        .gauge("process_virtual_memory_bytes", own.virtual_bytes);
    text.about("Memory of the server.").gauge("process_resident_memory_bytes", own.resident_bytes);
    text.about("Descriptors that the server has open.")
        .gauge("process_open_fds", own.open_descriptors);
    let most = own.most_descriptors.map_or("+Inf".to_owned(), |most| most.to_string());
    text.about("Descriptors that the server can have open.").gauge("process_max_fds", most);
}
