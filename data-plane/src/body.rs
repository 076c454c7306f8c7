//! Reading a request's body, whole and bounded.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::error::Refusal;

/// The longest silence within a body.
const SILENCE: Duration = Duration::from_secs(10);

/// Reads at most `limit` bytes. A body that comes in one piece is not copied.
pub(crate) async fn read(mut body: Incoming, headers: &HeaderMap, limit: usize) -> Result<Bytes, Refusal> {
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let too_large = || Refusal::BodyTooLarge { limit };
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
    if announced == Some(first.len()) {
        return Ok(first);
    }
    // Space for what was announced, but no faith in it: the rest must really come.
    let mut whole = BytesMut::with_capacity(announced.unwrap_or(0).max(first.len()).min(64 << 10));
    let mut piece = Some(first);
    while let Some(data) = piece {
        if whole.len() + data.len() > limit {
            return Err(too_large());
        }
        whole.extend_from_slice(&data);
        piece = next(&mut body).await?;
    }
    Ok(whole.freeze())
}

async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Refusal> {
    loop {
        let frame = timeout(SILENCE, body.frame()).await.map_err(|_| Refusal::BodyTimeout)?;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(Refusal::BodyIncomplete),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
