//! The world: a clock, a network that loses, doubles and delays, and everyone in it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::{Duration, Instant};

use lastbyte_fleet::{
    Action, Answer, Bid, Claim, Event, Fingerprint, Held, KeyOnNode, KeyedStart, NodeAnswer,
    OnSilence, Place, Revision, Wanted, nodes_to_ask, rank,
};

use crate::bucket::{Bucket, Name, Value, Write};
use crate::gateway::{Call, Gateway, is_of};
use crate::node::{Fate, Id, Node, Status};
use crate::random::Random;

// In milliseconds.
pub(crate) const LEASE: u64 = 2_000;
const ENTRY_TTL: u64 = 3_000;
const BEAT: u64 = 500;
pub(crate) const SILENT_AFTER: u64 = 1_500;
const BUCKET_TIMEOUT: u64 = 400;
const NODE_TIMEOUT: u64 = 400;
const SHOW_TIMEOUT: u64 = 400;
const BID_TIME: u64 = 20;
const FAULTS_UNTIL: u64 = 30_000;
pub(crate) const END: u64 = 70_000;
pub(crate) const SLOTS: u32 = 4;

/// A rule that is broken, to see that it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A gateway starts without writing a claim.
    ClaimSkipped,
    /// A node starts what is meant for another epoch.
    EpochIgnored,
    /// A gateway takes an ambiguous write for an acknowledged one.
    AmbiguousTrusted,
    /// A node that refused an attempt starts it later.
    RefusalForgotten,
    /// A node starts processes after its lease.
    LeaseIgnored,
    /// A gateway answers for a silent node.
    EndingInvented,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) nodes: usize,
    pub(crate) gateways: usize,
    pub(crate) clients: usize,
    pub(crate) keys: usize,
    /// How many nodes are asked for a bid.
    pub(crate) asked: usize,
    pub(crate) faults: bool,
    pub(crate) broken: Option<Broken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
    Gateway(usize),
    Node(usize),
    Bucket,
}

#[derive(Debug, Clone)]
enum Body {
    AskBid,
    Bid(Bid),
    Start(usize, Claim),
    Started(NodeAnswer<Id>),
    Ask(usize, Claim),
    Key(KeyOnNode),
    Show(usize),
    Shown(Status),
    Write(Write),
    Written(Option<Revision>),
    Read(Name),
    Found(Option<(Value, Revision)>),
}

#[derive(Debug, Clone)]
struct Message {
    from: Party,
    to: Party,
    request: u64,
    body: Body,
}

#[derive(Debug, Clone)]
enum Happening {
    Arrive(Message),
    Commit { message: Message, write: Write, term: u64 },
    Expire(Name, Revision),
    Timeout { gateway: usize, call: u64, request: u64 },
    ShowTimeout { client: usize, request: u64 },
    Beat(usize),
    Exit(Id),
    Client(usize),
    Watch(usize),
    Fault,
    NodeBack(usize),
    Heal,
}

struct Client {
    /// The keys that it wants, and whether it has an answer that ends its interest.
    key: usize,
    fingerprint: Fingerprint,
    settled: bool,
    acknowledged: Vec<Id>,
    /// What it has asked about, with which request.
    shows: Option<(u64, Id)>,
    shown: BTreeSet<Id>,
}

pub(crate) struct World {
    setup: Setup,
    random: Random,
    base: Instant,
    pub(crate) now: u64,
    order: u64,
    requests: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    bucket: Bucket,
    nodes: Vec<Node>,
    gateways: Vec<Gateway>,
    clients: Vec<Client>,
    cut: BTreeSet<(Party, Party)>,
    faulty: bool,
    /// Every start that was made, by key.
    starts: BTreeMap<usize, Vec<(Id, Claim)>>,
    replaced: BTreeMap<usize, u32>,
    pub(crate) violations: Vec<String>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let mut random = Random::new(setup.seed);
        let clients = (0..setup.clients).map(|_| Client::new(&mut random, setup)).collect();
        let mut world = Self {
            setup,
            random,
            base: Instant::now(),
            now: 0,
            order: 0,
            requests: 0,
            queue: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            bucket: Bucket::default(),
            nodes: (0..setup.nodes).map(|number| Node::new(number, setup.broken)).collect(),
            gateways: (0..setup.gateways).map(|_| Gateway::new()).collect(),
            clients,
            cut: BTreeSet::new(),
            faulty: setup.faults,
            starts: BTreeMap::new(),
            replaced: BTreeMap::new(),
            violations: Vec::new(),
            counts: BTreeMap::new(),
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        for node in 0..self.nodes.len() {
            let at = self.random.between(0, 50);
            self.at(at, Happening::Beat(node));
        }
        for gateway in 0..self.gateways.len() {
            self.at(10, Happening::Watch(gateway));
        }
        for client in 0..self.clients.len() {
            let at = self.random.between(1_000, 10_000);
            self.at(at, Happening::Client(client));
        }
        if self.setup.faults {
            self.at(1_000, Happening::Fault);
            self.at(FAULTS_UNTIL, Happening::Heal);
        }
    }

    /// Lets everything happen until the end, or until something was wrong.
    pub(crate) fn run(&mut self) {
        while let Some(Reverse((at, order))) = self.queue.pop() {
            let happening = self.happenings.remove(&order).expect("queued with it");
            let is_settled = !self.setup.faults && self.clients.iter().all(Client::is_done);
            if at > END || is_settled || self.violations.len() > 3 {
                break;
            }
            self.now = at;
            self.happen(happening);
        }
        if self.violations.is_empty() {
            self.check_end();
        }
    }

    fn check_end(&mut self) {
        for client in &self.clients {
            let key = client.key;
            if !client.settled {
                self.violations.push(format!("key {key} did not settle"));
            }
            for id in client.acknowledged.iter().filter(|id| !client.shown.contains(id)) {
                self.violations.push(format!("key {key}: acknowledged {id:?} was not found"));
            }
        }
    }

    pub(crate) fn starts(&self) -> usize {
        self.starts.values().map(Vec::len).sum()
    }

    pub(crate) fn replacements(&self) -> u32 {
        self.replaced.values().sum()
    }

    fn instant(&self) -> Instant {
        self.instant_of(self.now)
    }

    fn instant_of(&self, at: u64) -> Instant {
        self.base + Duration::from_millis(at)
    }

    fn at(&mut self, at: u64, happening: Happening) {
        self.order += 1;
        self.queue.push(Reverse((at, self.order)));
        self.happenings.insert(self.order, happening);
    }

    fn after(&mut self, pause: u64, happening: Happening) {
        self.at(self.now + pause, happening);
    }

    fn new_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn send(&mut self, from: Party, to: Party, request: u64, body: Body) {
        self.count(body.name(to));
        let message = Message { from, to, request, body };
        let copies = if self.faulty {
            [90, 10].map(|chance| self.random.percent(chance))
        } else {
            [true, false]
        };
        for _ in copies.iter().filter(|sent| **sent) {
            let late = self.faulty && self.random.percent(8);
            let pause =
                if late { self.random.between(10, 6_000) } else { self.random.between(1, 5) };
            self.after(pause, Happening::Arrive(message.clone()));
        }
    }

    fn is_cut(&self, one: Party, other: Party) -> bool {
        self.cut.contains(&(one.min(other), one.max(other)))
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive(message) => {
                if !self.is_cut(message.from, message.to) {
                    self.arrive(message);
                }
            }
            Happening::Commit { message, write, term } => self.commit(message, write, term),
            Happening::Expire(name, revision) => self.expire(name, revision),
            Happening::Timeout { gateway, call, request } => self.time_out(gateway, call, request),
            Happening::ShowTimeout { client, request } => self.show_timed_out(client, request),
            Happening::Beat(node) => self.beat(node),
            Happening::Exit(id) => {
                let status = &mut self.nodes[id.0].processes[id.1];
                if *status == Status::Running {
                    *status = Status::Exited(self.random.between(0, 256));
                }
            }
            Happening::Client(client) => self.client_turn(client),
            Happening::Watch(gateway) => self.watch(gateway),
            Happening::Fault => self.fault(),
            Happening::NodeBack(node) => self.nodes[node].up = true,
            Happening::Heal => {
                self.faulty = false;
                self.cut.clear();
                self.nodes.iter_mut().for_each(|node| node.up = true);
                self.bucket.down_until = self.now;
            }
        }
    }

    fn arrive(&mut self, message: Message) {
        match message.to {
            Party::Bucket => self.bucket_gets(message),
            Party::Node(node) => self.node_gets(node, message),
            Party::Gateway(gateway) => self.gateway_gets(gateway, message),
        }
    }

    fn answer(&mut self, message: &Message, body: Body) {
        self.send(message.to, message.from, message.request, body);
    }
}

// The bucket.
impl World {
    fn bucket_gets(&mut self, message: Message) {
        if self.now < self.bucket.down_until {
            return;
        }
        match message.body.clone() {
            Body::Write(write) => {
                let pause = self.random.between(1, if self.faulty { 30 } else { 3 });
                let term = self.bucket.term;
                self.after(pause, Happening::Commit { message, write, term });
            }
            Body::Read(name) => {
                // A server that lags behind answers, too.
                let lag = if self.faulty && self.random.percent(10) {
                    self.random.between(0, 800)
                } else {
                    0
                };
                let found = self.bucket.read(&name, self.now.saturating_sub(lag));
                self.answer(&message, Body::Found(found));
            }
            _ => {}
        }
    }

    fn commit(&mut self, message: Message, write: Write, term: u64) {
        let has_leader_of_before = term == self.bucket.term;
        if !has_leader_of_before && self.random.percent(50) {
            return;
        }
        if let Value::Claim(claim) = &write.value
            && let Name::Key(key) = write.name
        {
            let before = self.bucket.claim(key).map_or(0, |claim| claim.replaced);
            let replaced = claim.replaced;
            let written = self.bucket.commit(write, self.now);
            if written.is_some() && replaced > before {
                *self.replaced.entry(key).or_default() += 1;
            }
            self.acknowledge(&message, written, has_leader_of_before);
            return;
        }
        let name = write.name.clone();
        let written = self.bucket.commit(write, self.now);
        if let Some(revision) = written {
            self.after(ENTRY_TTL, Happening::Expire(name, revision));
        }
        self.acknowledge(&message, written, has_leader_of_before);
    }

    fn acknowledge(&mut self, message: &Message, written: Option<Revision>, heard: bool) {
        if heard {
            self.answer(message, Body::Written(written));
        }
    }

    fn expire(&mut self, name: Name, revision: Revision) {
        if self.now < self.bucket.down_until {
            let until = self.bucket.down_until;
            self.at(until, Happening::Expire(name, revision));
        } else {
            self.bucket.expire(&name, revision, self.now);
        }
    }
}

// Nodes.
impl World {
    fn node_gets(&mut self, number: usize, message: Message) {
        let now = self.instant();
        if !self.nodes[number].up {
            return;
        }
        match message.body.clone() {
            Body::AskBid => {
                if let Some(bid) = self.nodes[number].bid(now) {
                    self.answer(&message, Body::Bid(bid));
                }
            }
            Body::Start(key, claim) => {
                let answer = self.start_on_node(number, key, &claim);
                self.answer(&message, Body::Started(answer));
            }
            Body::Ask(key, claim) => {
                let standing = self.nodes[number].ask(key, &claim, now);
                self.answer(&message, Body::Key(standing));
            }
            Body::Show(process) => {
                let status = self.nodes[number].processes[process];
                self.answer(&message, Body::Shown(status));
            }
            Body::Found(found) => self.node_reads_entry(number, message.request, found),
            Body::Written(written) => self.node_wrote(number, message.request, written),
            _ => {}
        }
    }

    fn start_on_node(&mut self, number: usize, key: usize, claim: &Claim) -> NodeAnswer<Id> {
        let now = self.instant();
        let fate = match self.random.between(0, 100) {
            0..8 if self.faulty => Fate::Refuse,
            8..11 if self.faulty => Fate::Fail,
            _ => Fate::Start,
        };
        let before = self.nodes[number].processes.len();
        let answer = self.nodes[number].start(key, claim, fate, now);
        if self.nodes[number].processes.len() > before {
            let id = Id(number, before);
            let lasts = self.random.between(1, 12_000);
            self.after(lasts, Happening::Exit(id));
            self.started(key, id, claim);
        }
        answer
    }

    /// Checks a start that was just made.
    fn started(&mut self, key: usize, id: Id, claim: &Claim) {
        let starts = self.starts.entry(key).or_default();
        starts.push((id, claim.clone()));
        let may = 1 + self.replaced.get(&key).copied().unwrap_or_default() as usize;
        if starts.len() > may {
            let what =
                format!("key {key} was started {} times, {may} allowed: {starts:?}", starts.len());
            self.violations.push(what);
        }
        let there = self.bucket.claim(key);
        if self.setup.broken != Some(Broken::ClaimSkipped) && there.as_ref() != Some(claim) {
            let what = format!("key {key} was started with {claim:?}, but the claim is {there:?}");
            self.violations.push(what);
        }
    }

    fn beat(&mut self, number: usize) {
        self.after(BEAT, Happening::Beat(number));
        if !self.nodes[number].up {
            return;
        }
        let request = self.new_request();
        let in_doubt = self.nodes[number].waits_for.replace((request, self.now)).is_some();
        let epoch = self.nodes[number].epoch(self.instant());
        match self.nodes[number].entry_at {
            Some(revision) if !in_doubt && epoch.is_some() => {
                self.write_entry(number, request, Some(revision), epoch.is_some());
            }
            _ => {
                let name = Name::Node(number);
                self.send(Party::Node(number), Party::Bucket, request, Body::Read(name));
            }
        }
    }

    fn write_entry(&mut self, number: usize, request: u64, on: Option<Revision>, is_beat: bool) {
        let epoch = self.nodes[number].epoch(self.instant()).filter(|_| is_beat);
        self.nodes[number].entry_at = None;
        let value = Value::Entry(self.nodes[number].entry(epoch));
        let write = Write { name: Name::Node(number), value, on };
        self.nodes[number].waits_for = Some((request, self.now));
        self.nodes[number].writes = epoch;
        self.send(Party::Node(number), Party::Bucket, request, Body::Write(write));
    }

    fn node_reads_entry(&mut self, number: usize, request: u64, found: Option<(Value, Revision)>) {
        if self.nodes[number].waits_for.is_none_or(|(waits_for, _)| waits_for != request) {
            return;
        }
        let epoch = self.nodes[number].epoch(self.instant());
        let request = self.new_request();
        let on = found.as_ref().map(|(_, revision)| *revision);
        let is_own = match (&found, epoch) {
            (Some((Value::Entry(entry), at)), Some(epoch)) => is_of(entry, *at, epoch),
            _ => false,
        };
        self.write_entry(number, request, on, is_own);
    }

    fn node_wrote(&mut self, number: usize, request: u64, written: Option<Revision>) {
        let now = self.instant();
        let base = self.base;
        let node = &mut self.nodes[number];
        let Some((_, sent_at)) = node.waits_for.take_if(|(waits_for, _)| *waits_for == request)
        else {
            return;
        };
        if let Some(revision) = written {
            let sent_at = base + Duration::from_millis(sent_at);
            node.acknowledged(node.writes, revision, sent_at, now);
        }
    }
}

// Gateways.
impl World {
    fn watch(&mut self, number: usize) {
        let pause = self.random.between(20, 200);
        self.after(pause, Happening::Watch(number));
        if self.is_cut(Party::Gateway(number), Party::Bucket) || self.now < self.bucket.down_until {
            return;
        }
        let lag = if self.faulty { self.random.between(0, 300) } else { 0 };
        let (at, now, nodes) = (self.now.saturating_sub(lag), self.instant(), self.nodes.len());
        if self.faulty && self.random.percent(5) {
            self.gateways[number].list(&self.bucket, nodes, at, now);
        }
        self.gateways[number].watch(&self.bucket, at, now);
    }

    fn gateway_gets(&mut self, number: usize, message: Message) {
        let found = self.gateways[number]
            .calls
            .iter_mut()
            .find(|(_, call)| call.request == message.request);
        let Some((id, call)) = found else { return self.show_gets(message) };
        let id = *id;
        let event = match message.body {
            Body::Bid(bid) => {
                call.bids.push(bid);
                if call.bids.len() < self.setup.asked {
                    return;
                }
                Event::Bids(rank(
                    std::mem::take(&mut call.bids),
                    &Place::anywhere(),
                    message.request,
                ))
            }
            Body::Started(answer) => Event::Node(answer),
            Body::Key(standing) => Event::Key(standing),
            Body::Written(Some(revision)) => Event::Written(revision),
            Body::Written(None) => Event::Exists,
            Body::Found(found) => Event::Read(found.and_then(held)),
            _ => return,
        };
        self.step(number, id, event);
    }

    fn time_out(&mut self, number: usize, id: u64, request: u64) {
        let gateway = &mut self.gateways[number];
        let Some(call) = gateway.calls.get_mut(&id).filter(|call| call.request == request) else {
            return;
        };
        let event = match &call.action {
            Action::AskForBids => {
                Event::Bids(rank(std::mem::take(&mut call.bids), &Place::anywhere(), request))
            }
            Action::Create(_) | Action::Move { .. }
                if self.setup.broken == Some(Broken::AmbiguousTrusted) =>
            {
                Event::Written(Revision(0))
            }
            Action::Create(_) | Action::Move { .. } | Action::Read => Event::Ambiguous,
            Action::Start(claim) | Action::Ask(claim) => {
                Event::Silent(gateway.presence.lease(&claim.node, claim.epoch))
            }
            Action::Answer(_) => return,
        };
        self.step(number, id, event);
    }

    fn step(&mut self, number: usize, id: u64, event: Event<Id>) {
        let call = self.gateways[number].calls.get_mut(&id).expect("the caller has looked");
        let action = call.machine.on(event);
        self.act(number, id, action);
    }

    fn act(&mut self, number: usize, id: u64, action: Action<Id>) {
        let request = self.new_request();
        let call = self.gateways[number].calls.get_mut(&id).expect("the caller has looked");
        call.request = request;
        call.action = action.clone();
        let key = call.key;
        let from = Party::Gateway(number);
        let mut timeout = BUCKET_TIMEOUT;
        match action {
            Action::AskForBids => {
                timeout = BID_TIME;
                self.ask_for_bids(number, request);
            }
            Action::Create(_) if self.setup.broken == Some(Broken::ClaimSkipped) => {
                return self.step(number, id, Event::Written(Revision(0)));
            }
            Action::Create(claim) => self.write_claim(from, request, key, (claim, None)),
            Action::Move { claim, from: on } => {
                self.write_claim(from, request, key, (claim, Some(on)));
            }
            Action::Read => self.send(from, Party::Bucket, request, Body::Read(Name::Key(key))),
            Action::Start(claim) => {
                timeout = NODE_TIMEOUT;
                self.send(from, node_of(&claim), request, Body::Start(key, claim));
            }
            Action::Ask(claim) => {
                timeout = NODE_TIMEOUT;
                self.send(from, node_of(&claim), request, Body::Ask(key, claim));
            }
            Action::Answer(answer) => {
                let call = self.gateways[number].calls.remove(&id).expect("the caller has looked");
                return self.answered(call.client, call.key, answer);
            }
        }
        self.after(timeout, Happening::Timeout { gateway: number, call: id, request });
    }

    fn ask_for_bids(&mut self, number: usize, request: u64) {
        let random = self.random.next();
        let asked = self.setup.asked;
        let now = self.instant();
        let present = self.gateways[number].presence.present(now);
        let nodes: Vec<usize> = nodes_to_ask(present, &Place::anywhere(), asked, random)
            .iter()
            .map(|node| node.parse().expect("named by number"))
            .collect();
        for node in nodes {
            self.send(Party::Gateway(number), Party::Node(node), request, Body::AskBid);
        }
    }

    fn write_claim(
        &mut self,
        from: Party,
        request: u64,
        key: usize,
        write: (Claim, Option<Revision>),
    ) {
        let (claim, on) = write;
        let write = Write { name: Name::Key(key), value: Value::Claim(claim), on };
        self.send(from, Party::Bucket, request, Body::Write(write));
    }
}

// Clients.
impl World {
    fn client_turn(&mut self, number: usize) {
        let pause = self.random.between(500, 4_000);
        self.after(pause, Happening::Client(number));
        let gateway = self.random.below(self.gateways.len());
        self.show_one(number, gateway);
        if self.clients[number].settled && (!self.faulty || self.random.percent(50)) {
            return;
        }
        let on_silence = if self.faulty && self.random.percent(40) {
            OnSilence::Replace
        } else {
            OnSilence::AnswerUnknown
        };
        let Client { key, fingerprint, .. } = &self.clients[number];
        let (key, fingerprint) = (*key, fingerprint.clone());
        let (machine, action) = KeyedStart::new(Wanted { fingerprint, on_silence, patience: 12 });
        let call = Call {
            client: number,
            key,
            machine,
            action: action.clone(),
            request: 0,
            bids: Vec::new(),
        };
        let id = self.new_request();
        self.gateways[gateway].calls.insert(id, call);
        self.act(gateway, id, action);
    }

    /// Asks for one process that was acknowledged.
    fn show_one(&mut self, number: usize, gateway: usize) {
        let client = &self.clients[number];
        let open: Vec<Id> =
            client.acknowledged.iter().copied().filter(|id| !client.shown.contains(id)).collect();
        let id = match open.first() {
            Some(id) if !self.faulty => *id,
            _ if self.faulty && !client.acknowledged.is_empty() => {
                client.acknowledged[self.random.below(client.acknowledged.len())]
            }
            _ => return,
        };
        let request = self.new_request();
        self.clients[number].shows = Some((request, id));
        self.send(Party::Gateway(gateway), Party::Node(id.0), request, Body::Show(id.1));
        self.after(SHOW_TIMEOUT, Happening::ShowTimeout { client: number, request });
    }

    fn show_gets(&mut self, message: Message) {
        let Body::Shown(status) = message.body else { return };
        let asks =
            |client: &Client| client.shows.is_some_and(|(request, _)| request == message.request);
        let Some(number) = self.clients.iter().position(asks) else { return };
        self.shown(number, status);
    }

    fn show_timed_out(&mut self, number: usize, request: u64) {
        if self.clients[number].shows.is_none_or(|(waits_for, _)| waits_for != request) {
            return;
        }
        if self.setup.broken == Some(Broken::EndingInvented) {
            return self.shown(number, Status::Lost);
        }
        self.clients[number].shows = None;
        self.count("unknown");
    }

    /// Checks what a client was told about a process. It may be late, but not made up.
    fn shown(&mut self, number: usize, status: Status) {
        let Some((_, id)) = self.clients[number].shows.take() else { return };
        let there = self.nodes[id.0].processes[id.1];
        if status != Status::Running && status != there {
            self.violations.push(format!("{id:?} was reported {status:?}, but is {there:?}"));
        }
        if !self.faulty {
            self.clients[number].shown.insert(id);
        }
    }

    fn answered(&mut self, number: usize, key: usize, answer: Answer<Id>) {
        self.count(answer_name(&answer));
        // The answer may be lost on its way, too.
        if self.faulty && self.random.percent(10) {
            return;
        }
        match answer {
            Answer::Started { body: id, .. } => {
                if !self.nodes[id.0].has(key, id.1) {
                    self.violations
                        .push(format!("key {key}: {id:?} was acknowledged and is not there"));
                }
                let client = &mut self.clients[number];
                client.settled = true;
                if !client.acknowledged.contains(&id) {
                    client.acknowledged.push(id);
                }
            }
            Answer::Conflict(_) => self.clients[number].settled = true,
            Answer::Unknown(_) | Answer::Failed { .. } | Answer::NotPlaced(_) => {}
        }
    }
}

// Faults.
impl World {
    fn fault(&mut self) {
        if !self.faulty {
            return;
        }
        let pause = self.random.between(100, 1_500);
        self.after(pause, Happening::Fault);
        match self.random.between(0, 10) {
            0..3 => {
                let node = self.random.below(self.nodes.len());
                let with_machine = self.random.percent(50);
                self.nodes[node].crash(with_machine);
                let pause = self.random.between(100, 8_000);
                self.after(pause, Happening::NodeBack(node));
            }
            3 => {
                self.bucket.term += 1;
                self.bucket.down_until = self.now + self.random.between(50, 4_000);
            }
            4 => {
                let gateway = self.random.below(self.gateways.len());
                self.gateways[gateway] = Gateway::new();
            }
            5..8 => self.cut_links(),
            _ => self.cut.clear(),
        }
    }

    /// Cuts one off from some of the others.
    fn cut_links(&mut self) {
        let nodes = (0..self.nodes.len()).map(Party::Node);
        let all: Vec<Party> = nodes
            .chain((0..self.gateways.len()).map(Party::Gateway))
            .chain([Party::Bucket])
            .collect();
        let one = all[self.random.below(all.len())];
        for other in all {
            if other != one && self.random.percent(60) {
                self.cut.insert((one.min(other), one.max(other)));
            }
        }
    }
}

impl Client {
    fn is_done(&self) -> bool {
        self.settled && self.acknowledged.iter().all(|id| self.shown.contains(id))
    }

    fn new(random: &mut Random, setup: Setup) -> Self {
        let launch = if random.percent(8) { "another" } else { "one" };
        Self {
            key: random.below(setup.keys),
            fingerprint: Fingerprint(launch.to_owned()),
            settled: false,
            acknowledged: Vec::new(),
            shows: None,
            shown: BTreeSet::new(),
        }
    }
}

impl Body {
    fn name(&self, to: Party) -> &'static str {
        match self {
            Self::AskBid | Self::Bid(_) => "bids",
            Self::Start(..) | Self::Started(_) | Self::Ask(..) | Self::Key(_) => "start",
            Self::Show(_) | Self::Shown(_) => "show",
            Self::Write(Write { name: Name::Node(_), .. }) | Self::Read(Name::Node(_)) => {
                "presence"
            }
            Self::Write(_) | Self::Read(_) => "claim",
            Self::Written(_) | Self::Found(_) if matches!(to, Party::Node(_)) => "presence",
            Self::Written(_) | Self::Found(_) => "claim",
        }
    }
}

fn answer_name(answer: &Answer<Id>) -> &'static str {
    match answer {
        Answer::Started { .. } => "answered started",
        Answer::Unknown(_) => "answered unknown",
        Answer::Conflict(_) => "answered conflict",
        Answer::Failed { .. } => "answered failed",
        Answer::NotPlaced(_) => "answered not placed",
    }
}

fn held((value, revision): (Value, Revision)) -> Option<Held> {
    match value {
        Value::Claim(claim) => Some(Held { claim, revision }),
        Value::Entry(_) | Value::Removed => None,
    }
}

fn node_of(claim: &Claim) -> Party {
    Party::Node(claim.node.parse().expect("named by number"))
}
