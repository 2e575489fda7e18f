//! What rmcp asks of a server: who it is, which tools it has, and the call of one.

use std::sync::Arc;

use axum::http::request::Parts;
use lastbyte_wire::{Error, ErrorCode};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ContentBlock, Implementation, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::abandoned::Abandoned;
use super::args::Args;
use super::call::{Answer, Call, Stopped, no_tool};
use super::client::Client;
use super::tools::ToolName;
use super::{errors, exec, list, read, search, stop, wait, write};

#[derive(Debug, Clone, Default)]
pub(super) struct Handler {
    pub(super) abandoned: Arc<Abandoned>,
}

const INSTRUCTIONS: &str = "\
Runs commands and keeps what they write. exec_command runs one and waits for it; wait, read_output and \
search_output need only its process_id, also much later. An answer that folds output names the byte range \
and the call that fetches it. A command that fails is a normal result: look at its exit code. \
list_processes shows what there is in this session.";

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let own = Implementation::new("lastbyte", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(own)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(ToolName::ALL.map(ToolName::tool).to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        ToolName::find(name).map(ToolName::tool)
    }

    // There are only tools, and what is not offered is not answered with an empty list either.

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let client = parts.and_then(|parts| parts.extensions.get::<Client>()).cloned();
        let client = client.ok_or_else(|| ErrorData::internal_error("no client", None))?;
        let call = Call { client, context, abandoned: Arc::clone(&self.abandoned) };
        let result = match answer(&call, request).await {
            Ok(blocks) => {
                CallToolResult::success(blocks.into_iter().map(ContentBlock::text).collect())
            }
            Err(Stopped::Refused(error)) => {
                CallToolResult::error(vec![ContentBlock::text(errors::to_text(&error))])
            }
            // Nobody reads it.
            Err(Stopped::Cancelled) => return Err(ErrorData::internal_error("cancelled", None)),
        };
        Ok(result.into())
    }
}

async fn answer(call: &Call, request: CallToolRequestParams) -> Answer {
    let Some(tool) = ToolName::find(&request.name) else {
        let names = ToolName::ALL.map(ToolName::as_str).join(", ");
        return Err(no_tool(&request.name, &names).into());
    };
    call.client.scope.check(tool.needs()).map_err(|error| refused(error, tool))?;
    let args = Args::new(tool.arguments(), request.arguments.unwrap_or_default())?;
    match tool {
        ToolName::ExecCommand => exec::exec_command(call, &args).await,
        ToolName::WriteStdin => write::write_stdin(call, &args).await,
        ToolName::Wait => wait::wait(call, &args).await,
        ToolName::ReadOutput => read::read_output(call, &args).await,
        ToolName::SearchOutput => search::search_output(call, &args).await,
        ToolName::ListProcesses => list::list_processes(call, &args).await,
        ToolName::StopProcess => stop::stop_process(call, &args).await,
    }
}

fn refused(error: Error, tool: ToolName) -> Error {
    match error.code {
        ErrorCode::ReadOnlyToken => {
            let message = format!("{}, so it cannot be used for {}", error.message, tool.as_str());
            Error { message, ..error }
        }
        _ => error,
    }
}
