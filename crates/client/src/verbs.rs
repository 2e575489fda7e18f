//! The verbs, one method each.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::outage::Outage;
use crate::request::{ApiRequest, Retry, node_path, process_path, token_path};
use crate::subscription::Subscription;
use crate::wire::{
    AttachQuery, CreateLinkAnswer, CreateLinkRequest, CreateTokenAnswer, CreateTokenRequest,
    DrainRequest, EventsQuery, FollowQuery, ForgetManyRequest, ForgetQuery, Health, ListAnswer,
    ListQuery, ManyAnswer, NodesAnswer, Output, OutputQuery, Process, Receipt, ResizeRequest,
    SearchAnswer, SearchQuery, SignalAnswer, SignalManyRequest, SignalRequest, StartAnswer,
    StartRequest, StopManyRequest, StopProof, StopRequest, Survivor, TimesAnswer, TimesQuery,
    TokenList, UpgradeAnswer, UpgradeRequest, View, Wait, WaitAnswer, WaitManyAnswer,
    WaitManyRequest, WriteAnswer, WriteQuery,
};
use crate::{Attached, Client, ClientError, Events, Following, Problem, RawOutput};

const PROCESSES: &str = "/v1/processes";
const TOKENS: &str = "/v1/tokens";

impl Client {
    /// With a key it is sent again when a connection breaks: the same key is the same process. Without
    /// one that is [`ClientError::StartUnknown`].
    pub async fn start(&self, request: &StartRequest) -> Result<StartAnswer, ClientError> {
        let repeat = match request.key {
            Some(_) => Retry::Safe,
            None => Retry::Unsafe,
        };
        let started = self.value(&ApiRequest::post(PROCESSES, repeat).json(request)?).await;
        started.map_err(|error| match error {
            ClientError::Protocol {
                source: source @ (Problem::Http(_) | Problem::Ended), ..
            } if repeat == Retry::Unsafe => ClientError::StartUnknown { source },
            error => error,
        })
    }

    pub async fn list(&self, query: &ListQuery) -> Result<ListAnswer, ClientError> {
        self.value(&ApiRequest::get(PROCESSES).query(query)).await
    }

    pub async fn show(&self, id: &str) -> Result<Process, ClientError> {
        self.value(&ApiRequest::get(process_path(id, ""))).await
    }

    /// What was run, and the hash of its output, which takes as long as reading all of it.
    pub async fn receipt(&self, id: &str) -> Result<Receipt, ClientError> {
        self.value(&ApiRequest::get(process_path(id, "/receipt"))).await
    }

    /// What lives of its tree.
    pub async fn survivors(&self, id: &str) -> Result<Vec<Survivor>, ClientError> {
        self.value(&ApiRequest::get(process_path(id, "/survivors"))).await
    }

    /// A view as JSON; [`Client::raw`] is for the bytes themselves.
    pub async fn output(&self, id: &str, query: &OutputQuery) -> Result<Output, ClientError> {
        self.value(&ApiRequest::get(process_path(id, "/output")).query(query)).await
    }

    /// The bytes of the log; whatever view the query names, this is the raw one.
    pub async fn raw(&self, id: &str, query: &OutputQuery) -> Result<RawOutput, ClientError> {
        let query = OutputQuery { view: Some(View::Raw), ..query.clone() };
        let ask = ApiRequest::get(process_path(id, "/output")).query(&query);
        let (head, bytes) = self.answer(&ask).await?;
        RawOutput::new(&head.headers, bytes).map_err(|problem| ask.failed(problem))
    }

    /// The lines that match.
    pub async fn search(&self, id: &str, query: &SearchQuery) -> Result<SearchAnswer, ClientError> {
        self.value(&ApiRequest::get(process_path(id, "/output/search")).query(query)).await
    }

    /// When the output came.
    pub async fn times(&self, id: &str, query: &TimesQuery) -> Result<TimesAnswer, ClientError> {
        self.value(&ApiRequest::get(process_path(id, "/output/times")).query(query)).await
    }

    /// The output as it comes, over however many connections.
    pub async fn follow(&self, id: &str, query: &FollowQuery) -> Result<Following, ClientError> {
        let ask = ApiRequest::get(process_path(id, "/follow")).query(query);
        Ok(Following { log: Subscription::open(&self.link, ask).await?, over: false })
    }

    /// Input and output over one connection, which is the caller's to make again.
    pub async fn attach(&self, id: &str, query: &AttachQuery) -> Result<Attached, ClientError> {
        let mut outage = Outage::default();
        loop {
            match Attached::open(self.address(), id, query).await {
                Ok(attached) => {
                    self.link.seen();
                    return Ok(attached);
                }
                Err(error) => outage.pause(&self.link, error).await?,
            }
        }
    }

    /// The timeout counts from this call, over however many connections.
    pub async fn wait(&self, id: &str, wait: &Wait) -> Result<WaitAnswer, ClientError> {
        let ask = ApiRequest::post(process_path(id, "/wait"), Retry::Safe);
        self.until_met(ask, wait, |wait| wait).await
    }

    /// The same for several processes. Repeat it by ids: what other members select may change.
    pub async fn wait_many(
        &self,
        request: &WaitManyRequest,
    ) -> Result<WaitManyAnswer, ClientError> {
        let ask = ApiRequest::post("/v1/wait", Retry::Safe);
        let with = |wait| WaitManyRequest { wait, ..request.clone() };
        self.until_met(ask, &request.wait, with).await
    }

    /// Asks again with the time that is left.
    async fn until_met<R: Serialize, T: DeserializeOwned>(
        &self,
        ask: ApiRequest,
        wait: &Wait,
        request: impl Fn(Wait) -> R,
    ) -> Result<T, ClientError> {
        let begun = Instant::now();
        let left = |timeout: u64| {
            let passed = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            timeout.saturating_sub(passed)
        };
        let make = || {
            let wait = Wait { timeout_ms: wait.timeout_ms.map(left), ..wait.clone() };
            Ok(Cow::Owned(ask.clone().json(&request(wait))?))
        };
        let (_, body) = self.answer_to(make).await?;
        ask.decode(&body)
    }

    /// With an offset it is sent again when a connection breaks: bytes that were accepted before
    /// are not written twice.
    pub async fn write(
        &self,
        id: &str,
        bytes: impl Into<Bytes>,
        query: &WriteQuery,
    ) -> Result<WriteAnswer, ClientError> {
        let repeat = match query.offset {
            Some(_) => Retry::Safe,
            None => Retry::Unsafe,
        };
        let ask = ApiRequest::post(process_path(id, "/stdin"), repeat).query(query);
        self.value(&ask.bytes(bytes.into())).await
    }

    pub async fn signal(
        &self,
        id: &str,
        request: &SignalRequest,
    ) -> Result<SignalAnswer, ClientError> {
        self.value(&ApiRequest::post(process_path(id, "/signal"), Retry::Unsafe).json(request)?)
            .await
    }

    /// Answers when it is proved.
    pub async fn stop(&self, id: &str, request: &StopRequest) -> Result<StopProof, ClientError> {
        // Not repeated: a second stop kills without a grace period.
        self.value(&ApiRequest::post(process_path(id, "/stop"), Retry::Unsafe).json(request)?).await
    }

    /// Stops several at once. Answers when each is proved or refused.
    pub async fn stop_many(&self, request: &StopManyRequest) -> Result<ManyAnswer, ClientError> {
        // Not repeated either.
        self.value(&ApiRequest::post("/v1/stop", Retry::Unsafe).json(request)?).await
    }

    pub async fn signal_many(
        &self,
        request: &SignalManyRequest,
    ) -> Result<ManyAnswer, ClientError> {
        self.value(&ApiRequest::post("/v1/signal", Retry::Unsafe).json(request)?).await
    }

    pub async fn forget_many(
        &self,
        request: &ForgetManyRequest,
    ) -> Result<ManyAnswer, ClientError> {
        self.value(&ApiRequest::post("/v1/forget", Retry::Unsafe).json(request)?).await
    }

    pub async fn resize(&self, id: &str, request: &ResizeRequest) -> Result<(), ClientError> {
        let ask = ApiRequest::post(process_path(id, "/resize"), Retry::Safe).json(request)?;
        self.answer(&ask).await.map(drop)
    }

    pub async fn forget(&self, id: &str, query: &ForgetQuery) -> Result<(), ClientError> {
        self.answer(&ApiRequest::delete(process_path(id, "")).query(query)).await.map(drop)
    }

    /// What happens from here on, to the processes of a session or to all of them.
    pub async fn events(&self, session: Option<&str>) -> Result<Events, ClientError> {
        let query = EventsQuery { session: session.map(str::to_owned), ..EventsQuery::default() };
        let ask = ApiRequest::get("/v1/events").query(&query);
        Ok(Events { feed: Subscription::open(&self.link, ask).await? })
    }

    /// The server stops everything that it runs, and ends.
    pub async fn shutdown(&self) -> Result<(), ClientError> {
        self.answer(&ApiRequest::post("/v1/shutdown", Retry::Safe)).await.map(drop)
    }

    /// The only answer that has its secret.
    pub async fn create_token(
        &self,
        request: &CreateTokenRequest,
    ) -> Result<CreateTokenAnswer, ClientError> {
        // Not repeated: it would be a second token.
        self.value(&ApiRequest::post(TOKENS, Retry::Unsafe).json(request)?).await
    }

    /// A link to the page, which works once.
    pub async fn create_link(
        &self,
        request: &CreateLinkRequest,
    ) -> Result<CreateLinkAnswer, ClientError> {
        // One that nobody gets expires.
        self.value(&ApiRequest::post("/v1/links", Retry::Safe).json(request)?).await
    }

    pub async fn tokens(&self) -> Result<TokenList, ClientError> {
        self.value(&ApiRequest::get(TOKENS)).await
    }

    pub async fn revoke_token(&self, id: &str) -> Result<(), ClientError> {
        self.answer(&ApiRequest::delete(token_path(id))).await.map(drop)
    }

    /// Another worker, of this program, is about to serve.
    pub async fn upgrade(&self, request: &UpgradeRequest) -> Result<UpgradeAnswer, ClientError> {
        // Not repeated: it would be a second upgrade.
        self.value(&ApiRequest::post("/v1/upgrade", Retry::Unsafe).json(request)?).await
    }

    /// The nodes of the fleet, from a gateway.
    pub async fn nodes(&self) -> Result<NodesAnswer, ClientError> {
        self.value(&ApiRequest::get("/v1/nodes")).await
    }

    /// A node that is gone is forgotten until it joins again.
    pub async fn forget_node(&self, node: &str) -> Result<(), ClientError> {
        self.answer(&ApiRequest::delete(node_path(node, ""))).await.map(drop)
    }

    /// A node of the fleet takes no more commands, or takes them again.
    pub async fn drain(&self, node: &str, request: &DrainRequest) -> Result<(), ClientError> {
        let ask = ApiRequest::post(node_path(node, "/drain"), Retry::Safe).json(request)?;
        self.answer(&ask).await.map(drop)
    }

    pub async fn health(&self) -> Result<Health, ClientError> {
        self.value(&ApiRequest::get("/healthz")).await
    }
}
