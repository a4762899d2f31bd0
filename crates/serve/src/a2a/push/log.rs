//! The log of deliveries for those who may see a task: `GET /multitap/tasks/ID/pushDeliveries`.

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use multitap_event::ClientRole;
use multitap_hub::{DeliveriesOf, DeliveryRecord};
use serde_json::{Value, json};

use crate::error;
use crate::guard::Caller;
use crate::http::{Shared, problem};

/// Most entries of an answer.
const MOST: usize = 200;

pub(crate) async fn deliveries(
    State(door): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(task): Path<String>,
) -> Response {
    if caller.role == ClientRole::Observer {
        return problem(StatusCode::FORBIDDEN, "observers may not see the log of push deliveries");
    }
    let refuse = |error: &multitap_a2a::Error| {
        let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        problem(status, &error.message)
    };
    if let Err(error) = door.a2a.may_see(&door, &task).await {
        return refuse(&error);
    }
    let journal = door.host.journal();
    let found = match journal.push_queue() {
        Some(queue) => queue.deliveries(DeliveriesOf::Task(task), MOST).await,
        None => Ok(Vec::new()),
    };
    match found {
        Ok(found) => {
            let listed: Vec<Value> = found.iter().map(DeliveryRecord::to_json).collect();
            ([(header::CACHE_CONTROL, "no-store")], Json(json!({ "deliveries": listed }))).into_response()
        }
        Err(error) => refuse(&error::from_journal(&error)),
    }
}
