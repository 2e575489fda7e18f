/**
 * The types of the API, as `crates/wire/schema.json` and `openapi.json` define them. A test compares both
 * documents with this file, member by member.
 *
 * Times in nanoseconds are larger than the integers that a JavaScript number holds exactly: they are
 * rounded to about a quarter of a microsecond.
 */

/** Bytes: as text if they are UTF-8, which then ends with a whole character, else as base64. */
export type Bytes =
  | {
      text: string;
    }
  | {
      base64: string;
    };

/** What made the process end. */
export type Cause =
  | {
      kind: "own";
    }
  | {
      escalated: boolean;
      kind: "timed_out";
      which: TimeoutKind;
    }
  | {
      escalated: boolean;
      kind: "stopped";
      verb: StopVerb;
    }
  | {
      escalated: boolean;
      kind: "limit";
      which: LimitKind;
    };

/** How the output ended. */
export type Closing =
  | {
      kind: "eof";
    }
  | {
      holders?: Holder[];
      kind: "held";
    };

/** The view. Bytes that are not UTF-8 are shown as U+FFFD, except in `raw`. */
export type Content =
  | {
      base64: string;
      view: "raw";
    }
  | {
      lines: TextLine[];
      view: "text";
    }
  | {
      head: string;
      /** The range between head and tail. */
      omitted?: Range;
      tail: string;
      view: "head_tail";
    }
  | {
      lines: Line[];
      view: "lines";
    }
  | {
      screen: Screen;
      view: "screen";
    };

/** A number of processors, to a thousandth. */
export type Cpus = number;

/** A new token: the only answer with its secret. */
export interface CreateTokenAnswer {
  info: TokenInfo;
  /** For `Authorization: Bearer TOKEN`. It is not stored, and not shown again. */
  token: string;
}

/** `POST /v1/tokens`. Without `session` and `read_only` the token allows everything. */
export interface CreateTokenRequest {
  /** The token expires after this time. */
  expires_in_ms?: number;
  /** What it is for, shown in the list. */
  note?: string;
  /** Allow only what changes nothing. Not together with `session`. */
  read_only?: boolean;
  /** Allow only the processes of this session. */
  session?: string;
}

/** Which processes a signal reached. */
export type Delivered =
  | {
      to: "group";
    }
  | {
      count: number;
      to: "survivors";
    }
  | {
      to: "nobody";
    };

/** `POST /v1/nodes/{node}/drain`. */
export interface DrainRequest {
  /** `false` ends it. The default is `true`. */
  drain?: boolean;
}

/** A node as a gateway knows it. */
export interface Node {
  /** What it has said last; absent if this gateway has never heard it. */
  last?: NodeReport;
  name: string;
  state: NodeState;
}

/** What a node says of itself. */
export interface NodeReport {
  /** Grows each time that it joins. */
  epoch: number;
  /** How many more commands it takes. */
  free_slots: number;
  labels: Record<string, string>;
  /** Runnable threads for each thousand processors. */
  load: number;
}

/**
 * Whether a node is there. `present`: Present. `draining`: Present, and it takes no more commands. `silent`:
 * It was not heard for a while: what it has is unknown. `gone`: It was not heard for so long that it starts
 * nothing for the fleet until it has joined again.
 */
export type NodeState = "present" | "draining" | "silent" | "gone";

/** The nodes of a fleet, by name. */
export interface NodesAnswer {
  nodes: Node[];
}

/** A node of a fleet: the one with this name, or one that has all of these labels. */
export interface Place {
  labels?: Record<string, string>;
  node?: string;
}

/** How a process ended. If nobody saw the end (status `lost`), what only a witness could tell is absent. */
export interface Ending {
  cause?: Cause;
  closing?: Closing;
  /**
   * The length of the output; what follows in the log is late output. If nobody saw the end, the length
   * of what was stored: there may have been more.
   */
  final_len: number;
  kept?: Kept;
  /**
   * The limits it came up against: the one that ended it, and `pids` if the kernel refused to start a
   * process. The kernel does not tell of descriptors that it refused.
   */
  limits_hit?: LimitKind[];
  /** How many times a secret was masked in the output. Absent if none was. */
  masked?: number;
  /**
   * The kernel killed a process of the tree because memory ran out. Known only where the tree has a
   * cgroup that accounts memory.
   */
  oom_killed?: boolean;
  /**
   * The sandbox killed it, as far as a status can tell: for system calls of another architecture.
   * Everything else that a sandbox denies is an error to the program.
   */
  sandbox_denied?: boolean;
  status: Status;
  times: Times;
  usage?: Usage;
}

/**
 * How the kernel enforces a sandbox policy. Each way includes Landlock and a filter of system calls.
 * `mounts`: By read-only mounts. `user_mounts`: By read-only mounts in a user namespace. `landlock`: By
 * Landlock and the filter alone.
 */
export type Enforcement = "mounts" | "user_mounts" | "landlock";

/** What failed, and what to do next. */
export interface ErrorAnswer {
  code: ErrorCode;
  /** What to do next. */
  hint?: string;
  /** What failed, on what and why. */
  message: string;
}

/** An error answer: `{"error":{"code","message","hint"?}}`. */
export interface ErrorBody {
  error: ErrorAnswer;
}

/**
 * What went wrong, as a code that never changes. `invalid_request`: The request is invalid: bad JSON, an
 * unknown field, a value out of range. `invalid_pattern`: The pattern is not a valid regular expression,
 * or is too large. `unauthorized`: The token is missing or wrong. `forbidden_peer`: The client belongs to
 * another user. `sandboxed_peer`: The client runs in a sandbox that the server is not in. `cross_site`:
 * The request comes from a page of another site. `read_only_token`: The token is read-only, and the
 * request would change something. `session_token`: The token is for one session, and the request is about
 * another one or the whole server. `token_not_found`: There is no token with this id.
 * `process_not_found`: There is no process with this id or name. `route_not_found`: There is no such
 * route. `method_not_allowed`: The route does not support this method. `request_too_slow`: The body did
 * not arrive in time. `key_conflict`: The key was already used with a different command, option or
 * environment. `name_taken`: Another running process has the name. `ambiguous_id`: Several processes have
 * an id with this prefix or suffix. `not_ended`: The process has not ended. `output_held`: The output of
 * the process is still held open. `process_exited`: The process has exited. `stdin_not_open`: The
 * standard input of the process was never open, or is closed. `stdin_gap`: The write would leave a gap in
 * the input. `stdin_full`: The command does not read, and its input queue is full.
 * `too_many_failed_tokens`: Too many requests with a wrong token came from this address. `no_terminal`:
 * The process has no terminal. `upgrade_refused`: The program cannot replace that of the server, or the
 * server has no keeper to replace it. `body_too_large`: The body is larger than the limit.
 * `range_not_satisfiable`: The requested range starts past the end of the output. `unknown_host`: The
 * `Host` header does not name this server. `bad_cwd`: The working directory does not exist or is not a
 * directory. `sandbox_unavailable`: The sandbox policy cannot be enforced, so the command was not
 * started. `limit_unavailable`: A limit cannot be enforced here, so the command was not started.
 * `limit_above_cap`: A limit is higher than the server permits. `cap_reached`: The server, or the
 * session, has as many running processes or as much output as it may have. `program_not_found`: The
 * program was not found. `program_not_runnable`: The program was found but cannot be run.
 * `head_too_large`: The head of the request is larger than the limit, or has too many fields. `failed`:
 * The system refused, for example to start the command or to read the log. `too_many_connections`: The
 * connection limit is reached, or the server has no file descriptor to check the client.
 * `too_many_waits`: The limit of waiting requests is reached. `too_many_bodies`: The memory limit for
 * request bodies is reached. `too_many_answers`: The memory limit for answers that clients have not read
 * is reached. `out_of_memory`: The server has not enough memory for the body. `node_silent`: The node
 * does not answer: whether its processes run, and whether it has carried out the request, is unknown.
 * `node_not_found`: The fleet has no such node. `no_node`: No node takes the command. `node_draining`: The
 * node takes no more commands. `node_fenced`: The start was meant for another time of this node in the
 * fleet. `fleet_unreachable`: The gateway has no connection to the fleet. `not_a_gateway`: The server is no
 * gateway of a fleet. `shutting_down`: The server is shutting down.
 */
export type ErrorCode =
  | "invalid_request"
  | "invalid_pattern"
  | "unauthorized"
  | "forbidden_peer"
  | "sandboxed_peer"
  | "cross_site"
  | "read_only_token"
  | "session_token"
  | "page_token"
  | "token_not_found"
  | "process_not_found"
  | "route_not_found"
  | "method_not_allowed"
  | "request_too_slow"
  | "key_conflict"
  | "name_taken"
  | "ambiguous_id"
  | "not_ended"
  | "output_held"
  | "process_exited"
  | "stdin_not_open"
  | "stdin_gap"
  | "stdin_full"
  | "too_many_failed_tokens"
  | "keyboard_taken"
  | "keyboard_not_yours"
  | "no_terminal"
  | "upgrade_refused"
  | "link_gone"
  | "body_too_large"
  | "range_not_satisfiable"
  | "unknown_host"
  | "bad_cwd"
  | "sandbox_unavailable"
  | "limit_unavailable"
  | "limit_above_cap"
  | "cap_reached"
  | "program_not_found"
  | "program_not_runnable"
  | "head_too_large"
  | "failed"
  | "too_many_connections"
  | "too_many_waits"
  | "too_many_bodies"
  | "too_many_answers"
  | "out_of_memory"
  | "node_silent"
  | "node_not_found"
  | "no_node"
  | "node_draining"
  | "node_fenced"
  | "fleet_unreachable"
  | "not_a_gateway"
  | "shutting_down";

/** Something that happened to a process. The id of the event resumes the feed. */
export interface Event {
  at_unix_ns: number;
  /** With `started`: the program and its arguments, if it was started with `command`. */
  command?: string[];
  event: EventKind;
  labels?: Record<string, string>;
  name?: string;
  /** The process. */
  process: string;
  session?: string;
  /** With `started`: the shell command, if it was started with `shell`. */
  shell?: string;
}

/** What happened. */
export type EventKind =
  | {
      kind: "started";
    }
  | {
      kind: "first_output";
    }
  | {
      kind: "timed_out";
      which: TimeoutKind;
    }
  | {
      ending: Ending;
      kind: "ended";
    }
  | {
      chats: string[];
      kind: "workspace_touched";
      paths: string[];
    }
  | {
      kind: "forgotten";
    };

/** Which events. */
export interface EventsQuery {
  /** Only events that name this chat of Coder's agent. */
  chat?: string;
  /** Only events after this one, for clients that cannot send the header `Last-Event-ID`. */
  last_event_id?: string;
  /** Only events of processes of this session. */
  session?: string;
}

/** Repetitions of the line before them. */
export interface Fold {
  count: number;
  range: Range;
}

/** The data of `dropped`: these bytes were dropped by the quota before the follower read them. */
export interface FollowDropped {
  range: Range;
}

/** The data of `output` and of `late`: bytes of the log. */
export interface FollowOutput {
  /** When they were written, or up to a tenth of a second earlier; only with `times`. */
  at_unix_ns?: number;
  content: Bytes;
  /** Where they lie in the log. */
  range: Range;
  /** Which stream wrote them; absent if the streams are not split. */
  stream?: Stream;
}

/** Where to start, and when to stop. */
export interface FollowQuery {
  /** The cursor to start at; a negative one counts from the end. The default is 0. */
  from?: number;
  /** Continue after the ending, with output of surviving processes, until the log closes. */
  late?: boolean;
  /**
   * Add the time of each piece of output. Pieces then end where the time changes, even inside a
   * character.
   */
  times?: boolean;
}

/** `POST /v1/forget`. */
export interface ForgetManyRequest {
  select: Selection;
  /** Stop each first, with its whole tree. */
  stop?: boolean;
}

/** `DELETE /v1/processes/{id}`. */
export interface ForgetQuery {
  /** Stop it first, with its whole tree. */
  stop?: boolean;
}

/** `GET /healthz`. */
export interface Health {
  journal?: JournalHealth;
  /**
   * Absent from a server without a keeper, or whose keeper has died: a crash loses all its running
   * commands.
   */
  keeper?: KeeperHealth;
  /** Of the process to signal or to wait for: the keeper, if there is one. */
  pid: number;
  /** Of the session, for a token of one; absent without a token. */
  processes?: number;
  reach: Reach;
  /** Earlier versions of the server do not send this. */
  retention?: Retention;
  /** Of these, those that run. */
  running?: number;
  started_unix_ns: number;
  /** Earlier versions of the server send neither this nor `journal`. */
  status?: HealthStatus;
  version: string;
}

/** Whether the server works fully. `degraded`: Commands run, but there is a problem: see `journal`. */
export type HealthStatus = "ok" | "degraded";

/** A process that holds the output open. */
export interface Holder {
  name: string;
  pid: number;
}

/** Whether all records are on disk. */
export type JournalHealth =
  | {
      kind: "off";
    }
  | {
      kind: "ok";
    }
  | {
      bytes: number;
      kind: "waiting";
      /** What is wrong with the disk or the state directory. */
      why: string;
    };

/** The keeper of a server, which starts another worker when one crashes. */
export interface KeeperHealth {
  /** How the last one crashed, as the end of a sentence: `was killed by SIGKILL`. */
  last_crash?: string;
  pid: number;
  /** How many workers crashed. */
  restarts: number;
  /** Of the process that does the work. */
  worker_pid: number;
  worker_started_unix_ns: number;
}

/** Whether every byte of the output can still be read. */
export type Kept =
  | {
      kind: "whole";
    }
  | {
      dropped: Range[];
      kind: "dropped";
    }
  | {
      at: number;
      dropped: Range[];
      errno: number;
      kind: "failed";
    };

/**
 * How a limit is enforced. `kernel`: It cannot be passed. `sampled`: The server looks several times a
 * second, and kills the command when it has passed the limit.
 */
export type LimitEnforcement = "kernel" | "sampled";

/** One of the limits. */
export type LimitKind = "memory" | "cpus" | "pids" | "open_files" | "file_size" | "cpu_time";

/** Limits of a command. One that is absent is the server's default, if it has one. */
export interface Limits {
  /**
   * Processor time. The kernel holds each process to it, in whole seconds rounded up; the server holds
   * all of them together to it.
   */
  cpu_time_ms?: number;
  /**
   * Processors, like 1.5. The command waits for its turn when it has used its part. Only the kernel can
   * enforce this, by a cgroup; without one the command is not started.
   */
  cpus?: Cpus;
  /** The size of a file that a process may write, in bytes. Past it the process gets SIGXFSZ. */
  file_size_bytes?: number;
  /** Memory of the command and everything it starts together, in bytes. Past it they are killed. */
  memory_bytes?: number;
  /** Descriptors that each process may have open. */
  open_files?: number;
  /**
   * Processes and threads together. The kernel refuses to start more; where it cannot, the command is
   * killed.
   */
  pids?: number;
  /** Start the command only if the kernel enforces every limit. */
  strict?: boolean;
}

/** How each limit is enforced; absent without that limit. */
export interface LimitsEnforced {
  cpu_time?: LimitEnforcement;
  cpus?: LimitEnforcement;
  file_size?: LimitEnforcement;
  memory?: LimitEnforcement;
  open_files?: LimitEnforcement;
  pids?: LimitEnforcement;
}

/** A line, without its newline. */
export interface Line {
  /** The part of the range that did not fit into the text. */
  cut?: Range;
  /** Its bytes in the log, including the newline. */
  range: Range;
  text: string;
}

/**
 * Where lines begin, with the state of the process at the same instant. Late output is included. A dropped
 * range is one line: how many lines it had is not known.
 */
export interface LinesAnswer {
  /**
   * The offset up to which they were counted. If it is less than `total`, ask again: each request counts
   * up to 256 MiB more.
   */
  counted: number;
  /** The ranges of the log that were dropped. */
  dropped: Range[];
  /** The offset at which the last of them ends; absent if none is shown. */
  end?: number;
  /** How many lines come before the first one shown; absent if none is shown. */
  first?: number;
  /** How many lines were counted so far. */
  lines: number;
  /** Whether more output can come. */
  log_open: boolean;
  /** The offset at which each line begins. */
  offsets: number[];
  phase: Phase;
  /** The length of the log in bytes, including late output. */
  total: number;
}

/** Which lines. */
export interface LinesQuery {
  /** How many lines to show. The default is 1. */
  count?: number;
  /**
   * Start with the line that this many lines come before. The default is 0. A negative number counts
   * from the end: -1 is the last of the lines that were counted.
   */
  line?: number;
  /** Start with the line that has the byte at this offset of the log, instead. */
  offset?: number;
}

/** A page of processes. */
export interface ListAnswer {
  /** `before` of the next page; absent on the last page. */
  next?: string;
  processes: Process[];
  /** The nodes of a fleet that did not answer: what they have is not listed. */
  silent_nodes?: string[];
  /** The ids of ended processes on this page of which something still runs, if the query asks for it. */
  survived?: string[];
}

/** Which processes to list, newest first. */
export interface ListQuery {
  /** Only processes started before the one with this id: `next` of the previous page. */
  before?: string;
  /**
   * Whether it failed: it ended with another exit code than 0, by a signal or a timeout, or nobody saw
   * how. A process that was stopped has not failed.
   */
  failed?: boolean;
  /** `name=value`. */
  label?: string;
  /** How many processes to list. The default is 100. */
  limit?: number;
  name?: string;
  phase?: Phase;
  session?: string;
  /** Also look for what ended processes left running, which takes a search: `survived`. */
  survivors?: boolean;
}

/**
 * What came of a request for each process that it selected: those with `ids` in their order, others
 * newest first.
 */
export interface ManyAnswer {
  processes: Outcome[];
  /** The nodes of a fleet that did not answer: what came of it there is unknown. */
  silent_nodes?: string[];
}

/** Where a process reads its input from. */
export type InputKind = "pipe" | "terminal";

/** A process that the server may not look at, because it runs as another user. */
export interface InputUnknown {
  name: string;
  pid: number;
}

/** Which condition held first. */
export type Met =
  | {
      met: "exit";
    }
  | {
      met: "hand_over";
      /** How the last hand-over ended; absent if there was none. */
      how?: HandOverEnd;
    }
  | {
      /** This process waits for input. */
      met: "needs_input";
      pid: number;
      name: string;
      on: InputKind;
      /** It asks for a password: what is typed is not shown. */
      secret: boolean;
    }
  | {
      met: "output_past";
      total: number;
    }
  | {
      met: "pattern";
      range: Range;
      text: string;
    }
  | {
      met: "port";
      port: number;
    }
  | {
      met: "silence";
    }
  | {
      met: "timeout";
      /** If `needs_input` was waited for: this process may have been waiting, but the server may not look at it. */
      input_unknown?: InputUnknown;
    };

/** Who has the keyboard of a process. */
export interface Keyboard {
  /** What the client calls itself. */
  holder: string;
  /** What it types is a secret: not shown, and not kept. */
  secret: boolean;
  since_unix_ns: number;
}

/** How a hand-over of a keyboard to a person ended. */
export type HandOverEnd = "done" | "left" | "expired";

/** `POST /v1/links`. Without `process` the page sees what the client sees. */
export interface CreateLinkRequest {
  /** The link expires after this time, at most a day. The default is 5 minutes. */
  expires_in_ms?: number;
  /**
   * Hand the keyboard of the process to a person: access ends when the person is done, or has left.
   * Needs `process`.
   */
  once?: boolean;
  /** Let the page reach only this process. */
  process?: string;
}

/** A new link: the only answer with its secret. */
export interface CreateLinkAnswer {
  expires_unix_ns: number;
  /** To open in a browser. It works once. */
  url: string;
}

/** `POST /v1/links/trade`. */
export interface TradeLinkRequest {
  /** What follows `#link=` in the URL. */
  link: string;
}

/** What the page may use from now on. */
export interface TradeLinkAnswer {
  /** The keyboard of the process is handed to the person at this page. */
  hand_over: boolean;
  /** The only process that it reaches; absent if it is not bound to one. */
  process?: string;
  /** It may only read. */
  read_only: boolean;
  /** For `Authorization: Bearer TOKEN`. */
  token: string;
}

/** `POST /v1/tickets`: opens one WebSocket, for which a browser cannot send a token. */
export interface TicketAnswer {
  expires_unix_ns: number;
  /** For `GET /v1/processes/{id}/attach?ticket=TICKET`, with the scope of the token. */
  ticket: string;
}

/**
 * What to do with a command whose clients are gone. `stop`: Stop it with its whole tree; if it has ended,
 * what is left of that.
 */
export type OnDisconnect = "keep" | "stop";

/**
 * What to do with a command whose timeout has passed. `stop`: Stop it with its whole tree. `background`:
 * Report it, and let it run.
 */
export type OnTimeout = "stop" | "background";

/** What came of it for one process. If it could not be done, `error` says why. */
export interface Outcome {
  /** After a signal. */
  delivered?: Delivered;
  /** How it had ended, if it had ended before the request. */
  ended_before?: Ending;
  error?: ErrorAnswer;
  /** Its id, or what the request has in its place if there is no such process. */
  id: string;
  name?: string;
  /** After a stop. */
  proof?: StopProof;
}

/** A view of the log, with the state of the process at the same instant. */
export interface Output {
  content: Content;
  /** The ranges of the log that were dropped. */
  dropped: Range[];
  ending?: Ending;
  /** Where the output ends and late output starts, once that is known. */
  final_len?: number;
  /** Where the view starts. */
  from: number;
  /** Whether more output can come. */
  log_open: boolean;
  /** The cursor to continue from. */
  next: number;
  phase: Phase;
  /** The length of the log in bytes, including late output. */
  total: number;
}

/** The hash of the output, or why there is none. */
export type OutputHash =
  | {
      bytes: number;
      hex: string;
      kind: "sha256";
    }
  | {
      kind: "not_ended";
    }
  | {
      dropped: Range[];
      kind: "dropped";
    }
  | {
      kind: "incomplete";
      why: string;
    };

/** What to show of the log. */
export interface OutputQuery {
  /** For `screen`: add the colours, and what brings another terminal to the same state. */
  ansi?: boolean;
  /** For `screen`: the offset of the log to show the screen at. The default is the end. */
  at?: number;
  /** For `screen`: the width of the terminal. The default is the one of the process's terminal, else 80. */
  cols?: number;
  /** For `lines`: how many lines to show from the start. */
  first?: number;
  /** The cursor to start at; a negative one counts from the end. Not for `lines`. */
  from?: number;
  /** For `lines`: how many lines to show from the end. The default is 100. */
  last?: number;
  /** Include late output: what surviving processes wrote after the ending. */
  late?: boolean;
  max_bytes?: number;
  /** For `screen`: the height of the terminal. The default is the one of the process's terminal, else 24. */
  rows?: number;
  /** Only this stream, if the streams are split. */
  stream?: Stream;
  /** The default is `raw`. */
  view?: View;
  /**
   * Wait up to this long for output past `from`, or until no more can come: until the ending, or with
   * `late` until the log closes.
   */
  wait_ms?: number;
}

/**
 * The state of a process. `draining`: The leader has exited; its last bytes are being stored. `ended`:
 * Everything is stored, and there is an ending. `lost`: The server was killed before the process ended,
 * so nobody saw its end: it may still run. There is an ending, with the status `lost`.
 */
export type Phase = "running" | "draining" | "ended" | "lost";

/** A process at one instant. */
export interface Process {
  /** The program and its arguments, if it was started with `command`. */
  command?: string[];
  /** Its working directory. */
  cwd: string;
  /** The ranges of the log that were dropped. */
  dropped: Range[];
  ending?: Ending;
  id: string;
  key?: string;
  /** Who has its keyboard: nobody else can write then. Absent while every client may write. */
  keyboard?: Keyboard;
  labels?: Record<string, string>;
  /** What it and all its children may use, with the server's own limits; absent without limits. */
  limits?: Limits;
  /** How each of them is enforced. */
  limits_enforced?: LimitsEnforced;
  /**
   * The file on the server that has the output, dropped ranges as holes. Absent if little output of an
   * ended process is kept without one.
   */
  log_file?: string;
  /** Whether more output can come; after the ending, late output. */
  log_open: boolean;
  name?: string;
  /** The node of the fleet that has it. Only a gateway tells it. */
  node?: string;
  phase: Phase;
  /** The process id of the leader. */
  pid: number;
  /**
   * Whether all of this is in the journal on disk. If `false`, because the disk is full or the state
   * directory is gone, it is lost when the server is killed. Absent if the server keeps no journal.
   */
  recorded?: boolean;
  /** What it and all its children may do. */
  sandbox: Sandbox;
  session?: string;
  /** The shell command, if it was started with `shell`. */
  shell?: string;
  started_unix_ns: number;
  /**
   * Input that may not have arrived at its terminal, and is not typed again: the server was killed
   * while it typed it. Bytes past the accepted ones stand for the end of file. Absent if all arrived,
   * and once the server has been started again after the process had ended.
   */
  stdin_uncertain?: Range;
  streams: Streams;
  /** When its timeout passed, if it did. */
  timed_out_at_unix_ns?: number;
  /** The length of the log in bytes, including late output. */
  total: number;
}

/** How long a process may run and how much of its output is kept. */
export interface ProcessLimits {
  /** From when its last client has gone; absent if it is kept then. */
  disconnect_timeout_ms?: number;
  /** From its last output; absent for no limit. */
  idle_timeout_ms?: number;
  on_timeout: OnTimeout;
  quota_bytes: number;
  /** From its start; absent for no limit. */
  timeout_ms?: number;
}

/** The bytes of the log from `start` up to, not with, `end`. */
export interface Range {
  end: number;
  start: number;
}

/**
 * How the processes of a tree are found, best first. `leaf`: By a cgroup of its own. `scan`: By looking
 * through all processes. `group`: Only the process group of the leader.
 */
export type Reach = "leaf" | "scan" | "group";

/** A process, the terms it runs under, and the hash of its output. */
export interface Receipt {
  /**
   * How its sandbox is enforced. Absent if the policy restricts nothing, or if an earlier version of
   * the server started the process.
   */
  enforcement?: Enforcement;
  /** The variables that the start set or removed, by name. Their values are never kept. */
  env_names: string[];
  /** Absent if an earlier version of the server started the process. */
  limits?: ProcessLimits;
  output_hash: OutputHash;
  process: Process;
  /** The secret variables, by name. */
  secret_names?: string[];
  stop: StopPolicy;
}

/** `POST …/resize`. */
export interface ResizeRequest {
  cols: number;
  rows: number;
}

/** How long, how many and how much of its ended processes a server keeps. */
export interface Retention {
  /**
   * Nothing is forgotten sooner after its ending, unless there are more than `processes`, or the output
   * of all processes takes more than twice `output_bytes`.
   */
  at_least_ms: number;
  /** Everything is forgotten after this time. */
  at_most_ms: number;
  /** Disk space of the output of ended processes. */
  output_bytes: number;
  /** Ended processes of each session. */
  per_session: number;
  /** Ended processes of all sessions together. */
  processes: number;
}

/** `GET /v1`. */
export interface Root {
  name: string;
  version: string;
}

/**
 * A policy, in requests and in answers. A field that does not belong to the kind is an error, as any
 * unknown field is. Paths are absolute.
 */
export type Sandbox =
  | {
      kind: "full_access";
    }
  | {
      kind: "external";
    }
  | {
      kind: "read_only";
      /** Whether it can connect anywhere: other hosts, this one, unix sockets. */
      network?: boolean;
    }
  | {
      /**
       * Let it write startup files in a home directory (`.bashrc`, `.ssh`, `.config` …), which other
       * programs run outside of the sandbox.
       */
      allow_startup_files?: boolean;
      exclude_cwd?: boolean;
      exclude_slash_tmp?: boolean;
      exclude_tmpdir?: boolean;
      kind: "workspace_write";
      network?: boolean;
      /** Paths below them that it cannot write. */
      protect?: string[];
      /** More directories that it can write below. */
      writable?: string[];
    };

/** What a terminal shows. */
export interface Screen {
  /** Whether the program has switched to the other screen, as editors do. */
  alternate: boolean;
  /** With `ansi`: the rows with colours and other attributes as escape sequences. */
  ansi_lines?: string[];
  /**
   * With `ansi`: what brings another terminal of this size to the same screen, text, cursor and modes as here at
   * `ansi_at`.
   */
  ansi_state?: string;
  /**
   * With `ansi`: where another terminal goes on with the log, which is before a sequence or character that has not
   * ended.
   */
  ansi_at?: number;
  cols: number;
  /** Absent while it is hidden. */
  cursor?: ScreenCursor;
  /** The text of each row, without the spaces at its end. */
  lines: string[];
  rows: number;
  title?: string;
}

/** Where the cursor is. The first row and column are 0. */
export interface ScreenCursor {
  col: number;
  row: number;
}

/** What was found, with the state of the process at the same instant. */
export interface SearchAnswer {
  /** The ranges that could not be searched because they were dropped. */
  dropped: Range[];
  /** Whether more output can come. */
  log_open: boolean;
  matches: SearchMatch[];
  /**
   * The cursor to continue from: before a last line that does not match but may still grow, or before
   * lines that may be context of the next match.
   */
  next: number;
  /**
   * How many lines there are between the start of the search and `next`: add it to each `number` of the
   * search that continues there. Absent after a dropped range. Earlier versions of the server do not
   * send this.
   */
  next_number?: number;
  phase: Phase;
  /** Why the search stopped. */
  stopped: SearchStopped;
  /** The length of the log in bytes, including late output. */
  total: number;
}

/**
 * A line without its newline, as it was matched: plain or raw. Bytes that are not UTF-8 are shown as
 * U+FFFD.
 */
export interface SearchLine {
  /** Its bytes in the log, including the newline. */
  range: Range;
  text: string;
}

/**
 * A matching line. A line that was overwritten can have two: the first text that matches, and the text
 * that it finally shows. Each line of context is shown once, after the previous match if possible.
 */
export interface SearchMatch {
  after?: SearchLine[];
  before?: SearchLine[];
  /**
   * Where in the log the pattern matches: the first 64 matches in the line. Escape sequences between
   * matching characters are part of the range.
   */
  hits: Range[];
  line: SearchLine;
  /**
   * How many lines there are between the start of the search and this line. Absent after a dropped
   * range, because the lines in it are not known.
   */
  number?: number;
}

/** What to search for, and how far. */
export interface SearchQuery {
  /** How many lines to show after a matching line. The default is 0. */
  after?: number;
  /** How many lines to show before a matching line. The default is 0. */
  before?: number;
  /** The cursor to start at: `next` of the previous search. The default is 0. */
  from?: number;
  /** Include late output: what surviving processes wrote after the ending. */
  late?: boolean;
  /** How many matching lines to show. The default is 100. */
  max_matches?: number;
  /** A regular expression; a match lies within one line. */
  pattern: string;
  /**
   * Match the bytes of the log. The default is to match the text that a person sees: without escape
   * sequences, and what `\r` overwrites is no longer part of the line.
   */
  raw?: boolean;
  /** Only in this stream, if the streams are split. */
  stream?: Stream;
}

/**
 * Why a search stopped. `end`: The end of the log. `matches`: `max_matches` lines were found before the
 * end of the log. `bytes`: The answer has its largest size. `work`: One search may read no more of the
 * log.
 */
export type SearchStopped = "end" | "matches" | "bytes" | "work";

/**
 * Which processes: the ones with these ids, or all of them, of which only those count that meet every
 * other member. At least one member is needed, so that nobody selects everything by mistake.
 */
export interface Selection {
  /** All processes; `false` is the same as absent. */
  all?: boolean;
  /**
   * Whether it failed: it ended with another exit code than 0, by a signal or a timeout, or nobody saw
   * how. A process that was stopped has not failed.
   */
  failed?: boolean;
  /** Ids, or what stands for one: a name, `last`, or a unique prefix or suffix of an id. */
  ids?: string[];
  /** `name=value`. */
  label?: string;
  name?: string;
  phase?: Phase;
  session?: string;
}

/** Which processes a signal reached. */
export interface SignalAnswer {
  delivered: Delivered;
}

/** `POST /v1/signal`. */
export interface SignalManyRequest {
  /** Without `ids`, ended processes that have left nothing running are left out. */
  select: Selection;
  /** A name like `INT` or `SIGINT`, or a number. */
  signal: string;
}

/** `POST …/signal`. */
export interface SignalRequest {
  /** A name like `INT` or `SIGINT`, or a number. */
  signal: string;
}

/** When the bytes from this offset up to the next stamp were written. */
export interface Stamp {
  /** In whole milliseconds. */
  at_unix_ns: number;
  offset: number;
  /** Which stream wrote them; absent if the streams are not split. */
  stream?: Stream;
}

/** 201 if the process was started, 200 if the key had started it before. */
export interface StartAnswer {
  /** The key had started it before. */
  attached?: boolean;
  output?: Output;
  process: Process;
  wait?: Met;
  /** What could not be done as requested, though the command was started. */
  warnings?: string[];
}

/** What to run: exactly one of `command` and `shell`. Everything else is optional. */
export interface StartRequest {
  /** The program and its arguments. */
  command?: string[];
  /**
   * The directory to run it in, as an absolute path. The default is the server's `--workdir` if that
   * exists, else the home directory.
   */
  cwd?: string;
  /** With `on_disconnect: stop`, how long after the last client has gone. The default is 30000. */
  disconnect_timeout_ms?: number;
  /** Changes to the server's environment: a string sets a variable, null removes it. */
  env?: Record<string, string | null>;
  /** Stop it when it has written nothing for this long. */
  idle_timeout_ms?: number;
  /** A second start with the same key and the same command finds the same process. */
  key?: string;
  labels?: Record<string, string>;
  /** What it and everything it starts may use. */
  limits?: Limits;
  /** How many bytes of the output to show. */
  max_bytes?: number;
  /** A name for it, which every request takes instead of its id. No other running process has it. */
  name?: string;
  /** Where a gateway starts it. The default is the node with the most room. */
  on?: Place;
  /**
   * What to do when no client is connected to it any more. The default is `keep`. A client is connected
   * while a connection is open over which it started the process or asked about it.
   */
  on_disconnect?: OnDisconnect;
  /** What to do when a timeout passes. The default is `stop`. */
  on_timeout?: OnTimeout;
  /** How many bytes of its output to keep. */
  quota_bytes?: number;
  /** For a gateway: if the node that has the key is gone, start it on another one. It may then run twice. */
  replace?: boolean;
  /** What it may do. The default is the server's `--default-sandbox`. */
  sandbox?: Sandbox;
  /**
   * Secret variables, by name; none may be in `env`. They are in the command's environment and nowhere
   * else: wherever a value appears in the output, `***NAME***` is stored instead.
   */
  secrets?: Record<string, string>;
  /** The session it belongs to. */
  session?: string;
  /** A shell command, run by `sh -c`. */
  shell?: string;
  stdin?: Stdin;
  stop?: StopPolicy;
  streams?: StreamsAsked;
  /** Stop it after this long. */
  timeout_ms?: number;
  /** Run it on a terminal of this size. */
  tty?: Tty;
  /** How to show the output after the wait. The default is `head_tail`. */
  view?: View;
  /** Wait for this before answering. */
  wait?: Wait;
}

/** The leader's own status. */
export type Status =
  | {
      code: number;
      kind: "exited";
    }
  | {
      core_dumped: boolean;
      kind: "signalled";
      name: string;
      signal: number;
    }
  | {
      kind: "lost";
      /** The leader still runs, unwatched, with this process id. */
      running_pid?: number;
      why: string;
    };

/** What the command reads: nothing, what is written to it later, or the given bytes. */
export type Stdin =
  | "closed"
  | "open"
  | {
      text: string;
    }
  | {
      base64: string;
    };

/** `POST /v1/stop`. */
export interface StopManyRequest {
  /** Without `ids`, ended processes that have left nothing running are left out. */
  select: Selection;
  /** Instead of the policy that each was started with. */
  stop?: StopPolicy;
}

/** How to stop a command: a signal, then KILL after the grace period. */
export interface StopPolicy {
  /** The default is 5000; 0 kills at once. */
  grace_ms?: number;
  /** A name like `INT`, or a number. The default is TERM. */
  signal?: string;
}

/** The result of stopping a process with its tree. */
export interface StopProof {
  /** The ones of them that have exited; zombies count as exited. */
  gone: number[];
  /** The processes that are alive, or may be. */
  left: number[];
  /**
   * The name of each process above, by its pid, read before it ended. A process that exited too early
   * to be read has none.
   */
  names?: Record<string, string>;
  /**
   * Whether it is proved that nothing is left: the cgroup is empty, and the server knows to which
   * command each of its descendants belongs. `false` with an empty `left` means that a search found
   * nothing.
   */
  proved?: boolean;
  reach: Reach;
  /** The processes that were sent a signal. */
  signalled: number[];
  /**
   * The ones of `left` that may belong to another command, so they were not signalled. They are stopped
   * when the server ends.
   */
  unattributed?: number[];
}

/** `POST …/stop`, with a policy to use instead of the one of the start. */
export interface StopRequest {
  stop?: StopPolicy;
}

/**
 * What stopped it. `close`: The server shut down, or the connection it belonged to closed. `disconnect`:
 * No client was connected to it any more, and it was started with `on_disconnect: stop`.
 */
export type StopVerb = "stop" | "close" | "disconnect";

/** One of two split streams. */
export type Stream = "stdout" | "stderr";

/** How standard output and error reach the log. `tty`: Through a terminal. */
export type Streams = "merged" | "split" | "tty";

/** One pipe for both streams, which keeps their order, or one for each. */
export type StreamsAsked = "merged" | "split";

/** A live process of the tree. */
export interface Survivor {
  name: string;
  pid: number;
  /** It may belong to another command. */
  unattributed?: boolean;
}

/** A line as text, and how often it was repeated. */
export interface TextLine {
  /** The range to read if the text is incomplete. */
  cut?: Range;
  /** The bytes it was made from. */
  range: Range;
  repeats?: Fold;
  text: string;
}

/** Which timeout passed. */
export type TimeoutKind = "wall" | "idle";

/** `_unix_ns` is time since 1970; `_ns` is measured by a monotonic clock. */
export interface Times {
  /** From the leader's exit to the ending. */
  drained_ns?: number;
  ended_unix_ns?: number;
  exited_unix_ns?: number;
  /** When the server found that nobody saw the end. Only then the others but the start are absent. */
  found_unix_ns?: number;
  /** From the start to the leader's exit. */
  ran_ns?: number;
  started_unix_ns: number;
}

/** When the bytes from `from` to `next` were written, with the state of the process at one instant. */
export interface TimesAnswer {
  /** The first byte of the answer: with `since_unix_ns`, the cursor to read from. */
  from: number;
  /** Whether more output can come. */
  log_open: boolean;
  /** The cursor to continue from. */
  next: number;
  phase: Phase;
  /** Bytes were written at the time of their stamp, or less than this later. */
  resolution_ms: number;
  /** In order. Dropped bytes may have no stamp of their own. */
  stamps: Stamp[];
  /** The length of the log in bytes, including late output. */
  total: number;
}

/** Which bytes to show the times of. */
export interface TimesQuery {
  /** The cursor to start at: `next` of the previous answer. The default is 0. */
  from?: number;
  /** Include late output: what surviving processes wrote after the ending. */
  late?: boolean;
  /** How many stamps to show. The default is 1000, the most is 10000. */
  max_stamps?: number;
  /** Start at the first byte that may have been written at this time or later, if that is after `from`. */
  since_unix_ns?: number;
  /** The cursor to stop at. The default is the end of the output. */
  to?: number;
}

/** A token without its secret. */
export interface TokenInfo {
  created_unix_ns: number;
  expires_unix_ns?: number;
  id: string;
  note?: string;
  scope: TokenScope;
}

/** `GET /v1/tokens`: oldest first. Expired tokens are listed until they are revoked. */
export interface TokenList {
  tokens: TokenInfo[];
}

/** What a token allows. */
export type TokenScope =
  | {
      kind: "all";
    }
  | {
      kind: "read_only";
    }
  | {
      kind: "session";
      name: string;
    };

/** The size of a terminal in characters. */
export interface Tty {
  cols: number;
  rows: number;
}

/** What a server that agreed to an upgrade is about to do. */
export interface UpgradeAnswer {
  /** The version that has answered. */
  from: string;
  /** The version that answers next, unless it fails to start. */
  to: string;
  /**
   * Of the worker that has answered. The upgrade is over when `/healthz` has another; it has failed if
   * `restarts` has grown as well.
   */
  worker_pid: number;
}

/** `POST /v1/upgrade`. */
export interface UpgradeRequest {
  /** The absolute path of the program that the server is to run, on the server's machine. */
  binary: string;
}

/** Resources used by the leader and the children it waited for. */
export interface Usage {
  /** In bytes; absent if it cannot be told apart from that of others. */
  peak_memory?: number;
  system_ns: number;
  user_ns: number;
}

/**
 * A rendering of the log. `raw`: The bytes as they are. `text`: Text without escape sequences, with
 * overwritten lines resolved and repeated lines folded. `head_tail`: The start and the end, and the range
 * left out between them. `screen`: What a terminal shows that has read the log.
 */
export type View = "lines" | "raw" | "text" | "head_tail" | "screen";

/**
 * What to wait for: at least one condition, of which the first that holds is answered. When no more
 * output can come, the answer is `exit`, whatever the conditions.
 */
export interface Wait {
  /** The process has ended. */
  exit?: boolean;
  /** The cursor to search for the pattern from. The default is 0. */
  from?: number;
  /** A process of it waits for input. */
  needs_input?: boolean;
  /** No hand-over of its keyboard to a person is open: the person is done or has left, or the link has expired. */
  hand_over?: boolean;
  /** The log has more bytes than this. */
  output_past?: number;
  /** A line of the output matches this regular expression. */
  pattern?: string;
  /** The process or one of its descendants listens on this TCP port. */
  port?: number;
  /**
   * Match the pattern with the bytes of the log. The default is to match the text that a person sees,
   * without escape sequences.
   */
  raw?: boolean;
  /** It wrote nothing for this long, counted from the request or the last byte after it. */
  silence_ms?: number;
  /** This much time has passed. */
  timeout_ms?: number;
}

/** The process as it was when the condition held. */
export interface WaitAnswer {
  process: Process;
  wait: Met;
}

/** Each process that was selected: those with `ids` in their order, others newest first. */
export interface WaitManyAnswer {
  processes: WaitOutcome[];
}

/** `POST /v1/wait`. */
export interface WaitManyRequest {
  /** Whether one process is enough. The default is to wait for all of them. */
  any?: boolean;
  select: Selection;
  /** What each is waited for: the first condition that holds. */
  wait: Wait;
}

/**
 * A process at the time of the answer, and the condition that it has met. With `any`, the others have met
 * none.
 */
export interface WaitOutcome {
  process: Process;
  wait?: Met;
}

/** The bytes were queued. */
export interface WriteAnswer {
  /** How many bytes have been accepted in total: the offset of the next write. */
  accepted: number;
}

/** `POST …/stdin`, beside the bytes in the body. */
export interface WriteQuery {
  /** Close standard input after the bytes. */
  close?: boolean;
  /** Keys to type after the bytes, separated by commas, such as `C-c` or `Enter,Up`. */
  keys?: string;
  /** The offset of the bytes in the input: bytes accepted before are not written again. */
  offset?: number;
}
