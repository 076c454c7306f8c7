//! `POST /v1/responses`

mod check;
mod write;

use bytes::Bytes;
use serde_json::{Value, json};

use super::super::{Frame, Incoming, Speech};
use super::refuse;
use crate::reject::Rejection;
use crate::script::{Asked, Script};

/// `POST /v1/responses`
#[derive(Debug)]
pub(crate) struct Responses;

impl Speech for Responses {
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection> {
        let body = incoming.json()?;
        let model = match &body["model"] {
            Value::String(model) if incoming.has(model) => model.clone(),
            Value::String(model) => return Err(Rejection::unknown_model(model)),
            _ => return Err(Rejection::missing("model")),
        };
        check::responses(&body, incoming.asked(model, "input")).map_err(refuse)
    }

    fn whole(&self, script: &Script) -> Value {
        write::whole(script)
    }

    fn stream(&self, script: &Script) -> Vec<Frame> {
        write::stream(script)
    }

    fn broken(&self, rejection: &Rejection) -> Bytes {
        let data = json!({
            "type": "error", "code": rejection.code, "message": rejection.message, "param": rejection.param,
            "sequence_number": 1,
        });
        Frame::named("error", &data, false).bytes
    }
}
