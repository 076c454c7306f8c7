//! Messages to nodes, encoded once for all of them.
//!
//! A snapshot can have a mebibyte and there can be a thousand nodes: encoding it for each stream would cost a gigabyte
//! and, for live states, a good part of a core every second. Streams carry [`Frame`]s instead: the bytes of a whole
//! `SubscribeResponse`, shared.

use bytes::{BufMut, Bytes};
use penstock_proto::fleet::v1::subscribe_response::Message;
use penstock_proto::fleet::v1::{LiveState, Snapshot, SubscribeRequest, SubscribeResponse};
use prost::Message as _;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::policy::Published;

/// An encoded `SubscribeResponse`.
#[derive(Debug, Clone)]
pub(crate) struct Frame(Bytes);

impl Frame {
    pub(crate) fn snapshot(policy: &str, published: &Published) -> Self {
        Self::of(Message::Snapshot(Snapshot {
            nonce: published.nonce,
            policy: policy.to_owned(),
            version: published.version.version,
            content_hash: published.version.content_hash.clone(),
            document: published.document.as_bytes().to_vec(),
            lineage: published.lineage.clone(),
            created_unix_ms: published.version.created_unix_ms,
            capability_model: published.capability_model.to_vec(),
        }))
    }

    pub(crate) fn live(state: LiveState) -> Self {
        Self::of(Message::Live(state))
    }

    fn of(message: Message) -> Self {
        Self(SubscribeResponse { message: Some(message) }.encode_to_vec().into())
    }
}

/// Encodes frames by copying them, and decodes what nodes say.
#[derive(Debug, Default)]
pub(super) struct FrameCodec;

impl Codec for FrameCodec {
    type Encode = Frame;
    type Decode = SubscribeRequest;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for FrameCodec {
    type Item = Frame;
    type Error = Status;

    fn encode(&mut self, Frame(bytes): Frame, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(bytes.len());
        buffer.put_slice(&bytes);
        Ok(())
    }
}

impl Decoder for FrameCodec {
    type Item = SubscribeRequest;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<SubscribeRequest>, Status> {
        SubscribeRequest::decode(buffer).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
