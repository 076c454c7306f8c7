//! What rules can know of a request, each thing worked out when a rule first asks and then kept.
//!
//! What no rule asks for is never computed: texts are decoded, a language guessed, a capability classified and a map of
//! headers made for the rules alone that look at them.

use std::borrow::Cow;
use std::sync::OnceLock;

use cel::common::types::CelMap;
use chrono::DateTime;
use penstock_model::Policy;
use penstock_model::condition::{BackendFacts, Backends};
use penstock_model::policy::{
    CapabilityId, Constraint, Field, Language, NumberField, TextField, address_number, week_minute,
};

use crate::capability::{CapabilitySource, Classification, Classifier};
use crate::context::RequestContext;
use crate::language::language;

mod variables;

/// Header that names the caller's line of business.
const BIZ_TYPE: &str = "x-biz-type";
/// Header that names the caller's session.
const SESSION: &str = "x-session-id";

/// Gives the texts of the last user message, in order, decoded.
pub type Texts<'a> = dyn Fn() -> Vec<Cow<'a, str>> + Sync + 'a;

/// See the module's documentation.
pub struct Facts<'a> {
    pub(crate) request: RequestContext<'a>,
    pub(crate) policy: &'a Policy,
    classifier: &'a Classifier,
    asked: Option<CapabilityId>,
    texts: &'a Texts<'a>,
    backends: Backends<'a>,
    said: OnceLock<Vec<Cow<'a, str>>>,
    classification: OnceLock<Classification>,
    language: OnceLock<Language>,
    host: OnceLock<Cow<'a, str>>,
    headers: OnceLock<CelMap<'a>>,
}

impl std::fmt::Debug for Facts<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Facts").field("request", &self.request).finish_non_exhaustive()
    }
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValue<'a> {
    /// Text; `None` of a header that is absent.
    Text(Option<&'a str>),
    Number(u128),
}

impl<'a> Facts<'a> {
    /// Of a request under a policy, whose classifier it is. `asked` is the capability the client named, if any.
    #[must_use]
    pub fn new(
        request: RequestContext<'a>,
        policy: &'a Policy,
        classifier: &'a Classifier,
        asked: Option<CapabilityId>,
        texts: &'a Texts<'a>,
        backends: &'a dyn BackendFacts,
    ) -> Self {
        Self {
            request,
            policy,
            classifier,
            asked,
            texts,
            backends: Backends(backends),
            said: OnceLock::new(),
            classification: OnceLock::new(),
            language: OnceLock::new(),
            host: OnceLock::new(),
            headers: OnceLock::new(),
        }
    }

    /// What the request needs: what the client named, or what its text is taken for.
    pub fn classification(&self) -> Classification {
        *self.classification.get_or_init(|| match self.asked {
            Some(capability) => {
                Classification { capability, confidence: 1.0, source: CapabilitySource::Caller }
            }
            None => self.classifier.classify(self.said()),
        })
    }

    /// Does this hold of the request?
    #[must_use]
    pub fn holds(&self, constraint: &Constraint) -> bool {
        match self.value(&constraint.field) {
            FieldValue::Text(text) => text.is_some_and(|text| constraint.accepts.text(text)),
            FieldValue::Number(number) => constraint.accepts.number(number),
        }
    }

    pub(crate) fn value(&self, field: &Field) -> FieldValue<'_> {
        match field {
            Field::Text(field) => FieldValue::Text(Some(self.text(*field))),
            Field::Header(name) => FieldValue::Text(self.header(name.as_str())),
            Field::Number(field) => FieldValue::Number(self.number(*field)),
            Field::WeekMinute(zone) => {
                FieldValue::Number(week_minute(*zone, self.request.unix_seconds).into())
            }
        }
    }

    fn text(&self, field: TextField) -> &str {
        let request = &self.request;
        match field {
            TextField::Method => request.method,
            TextField::Path => request.path,
            TextField::Host => self.host.get_or_init(|| bare_host(request.host)),
            TextField::Model => request.model,
            TextField::Protocol => request.protocol,
            TextField::User => request.user,
            TextField::Session => self.session(),
            TextField::BizType => self.header(BIZ_TYPE).unwrap_or_default(),
            TextField::Zone => request.zone,
            TextField::Region => request.region,
            TextField::Node => request.node,
            TextField::Language => self.language().as_str(),
            TextField::Capability => &self.policy.capabilities[self.classification().capability.index()].name,
        }
    }

    fn number(&self, field: NumberField) -> u128 {
        let request = &self.request;
        match field {
            NumberField::Stream => request.stream.into(),
            NumberField::SystemPrompt => request.system_prompt.into(),
            NumberField::Images => request.images.into(),
            NumberField::Audio => request.audio.into(),
            NumberField::JsonSchema => request.json_schema.into(),
            NumberField::Tools => request.tools.into(),
            NumberField::MessageCount => request.message_count.into(),
            NumberField::PromptTokens => request.prompt_tokens.into(),
            NumberField::MaxTokens => request.max_tokens.into(),
            NumberField::Hour => request.hour().into(),
            NumberField::Weekday => request.weekday().into(),
            NumberField::Bucket => self.bucket().into(),
            NumberField::ClientIp => address_number(request.client_ip),
        }
    }

    fn header(&self, lower_case_name: &str) -> Option<&'a str> {
        self.request.header(lower_case_name)
    }

    fn session(&self) -> &'a str {
        self.header(SESSION).filter(|session| !session.is_empty()).unwrap_or(self.request.session)
    }

    fn language(&self) -> Language {
        *self.language.get_or_init(|| language(self.said()))
    }

    fn said(&self) -> impl Iterator<Item = &str> {
        self.said.get_or_init(|| (self.texts)()).iter().map(AsRef::as_ref)
    }

    /// 0 to 99. The same in every proxy and every version, so that whoever is in stays in: FNV-1a of 64 bits, whose lower
    /// bits are mixed by MurmurHash3's finaliser.
    fn bucket(&self) -> u32 {
        let session = self.session();
        let key = if session.is_empty() { self.request.request_id } else { session };
        let fnv = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        ((mixed ^ (mixed >> 33)) % 100) as u32
    }

    /// Like 2026-12-01, UTC.
    fn date(&self) -> String {
        self.arrived().date_naive().to_string()
    }

    fn arrived(&self) -> DateTime<chrono::Utc> {
        let seconds = i64::try_from(self.request.unix_seconds).unwrap_or_default();
        DateTime::from_timestamp(seconds, 0).unwrap_or_default()
    }
}

/// The host alone, in lower case. An IPv6 address keeps its brackets.
fn bare_host(host: &str) -> Cow<'_, str> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => name,
        _ => host,
    };
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        name.to_ascii_lowercase().into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests;
