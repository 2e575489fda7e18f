//! `upgrade`: another program takes over from this one, and what runs goes on.

use std::path::PathBuf;

use lastbyte_wire::{Error, ErrorCode, UpgradeAnswer, UpgradeRequest};
use tokio::sync::oneshot;

use super::refusal::broken;
use crate::{App, UpgradeAsked};

/// Answers before it is done.
pub async fn upgrade(app: &App, request: &UpgradeRequest) -> Result<UpgradeAnswer, Error> {
    let binary = PathBuf::from(&request.binary);
    if !binary.is_absolute() {
        let message = format!("`binary` must be an absolute path, not {:?}", request.binary);
        return Err(Error::new(ErrorCode::InvalidRequest, message));
    }
    let refused = |why| Error::new(ErrorCode::UpgradeRefused, why);
    let (Some(keeper), Some(health)) = (&app.keeper, app.keeper_health()) else {
        let why = "the server has no keeper, so nothing would outlive the upgrade";
        let hint = "stop the server with `lastbyte shutdown` and start the other program";
        return Err(refused(why.to_owned()).hint(hint));
    };
    let (answer, answered) = oneshot::channel();
    let asked = keeper.upgrades.send(UpgradeAsked { binary, answer }).await;
    asked.map_err(|_| Error::new(ErrorCode::ShuttingDown, "the server is shutting down"))?;
    let to = answered.await.map_err(|_| broken("upgrading"))?.map_err(refused)?;
    let from = env!("CARGO_PKG_VERSION").into();
    Ok(UpgradeAnswer { from, to, worker_pid: health.worker_pid })
}
