//! `backends` in conditions: how the targets are doing now.

use cel::ExecutionError;
use cel::common::traits::Indexer;
use cel::common::types::{CelDouble, CelInt, CelString, MAP_TYPE, Type};
use cel::common::value::{CowVal, Val};

/// What is known of a backend at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// Share of calls that succeed.
    SuccessRate,
    /// Share of calls that fail.
    ErrorRate,
    /// Seconds an answer takes.
    Latency,
    /// Seconds to the first token.
    FirstToken,
    /// Calls under way from this proxy.
    InFlight,
    /// Price of a thousand tokens.
    CostPer1kTokens,
    /// Its score.
    Score,
    /// State of the breaker.
    Breaker,
    /// Until when its key may not be used.
    Cooldown,
}

impl Fact {
    /// Every one of them.
    pub const ALL: &[Self] = &[
        Self::SuccessRate,
        Self::ErrorRate,
        Self::Latency,
        Self::FirstToken,
        Self::InFlight,
        Self::CostPer1kTokens,
        Self::Score,
        Self::Breaker,
        Self::Cooldown,
    ];

    /// Its name in conditions, its CEL type, and what it is.
    #[must_use]
    pub fn describe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::SuccessRate => {
                ("success_rate", "double", "share of its calls that succeed, 0 to 1, of the whole fleet")
            }
            Self::ErrorRate => ("error_rate", "double", "1 − `success_rate`"),
            Self::Latency => {
                ("latency", "double", "seconds that a standard request takes there, as expected")
            }
            Self::FirstToken => ("first_token", "double", "seconds to the first token, as expected"),
            Self::InFlight => ("in_flight", "int", "calls that this proxy has under way there"),
            Self::CostPer1kTokens => (
                "cost_per_1k_tokens",
                "double",
                "price of a thousand tokens, two of input to one of output, in the policy's currency; absent without a price",
            ),
            Self::Score => {
                ("score", "double", "its score in the first pool that has it, the higher the better")
            }
            Self::Breaker => {
                ("breaker", "string", "closed, open, half_open or ramp, as this proxy acts on it")
            }
            Self::Cooldown => {
                ("cooldown", "double", "seconds until its key may be used again, 0 when it may now")
            }
        }
    }

    /// The fact with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fact| fact.describe().0 == name)
    }
}

/// The value of a [`Fact`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FactValue {
    /// A share, a duration in seconds, a price.
    Number(f64),
    /// A count.
    Count(u64),
    /// A word.
    Word(&'static str),
}

/// Whoever knows how the backends are doing.
pub trait BackendFacts: std::fmt::Debug + Send + Sync {
    /// What is known of a backend's first model, or of another of its models as `backend/model`; `None` when nothing is.
    fn fact(&self, name: &str, fact: Fact) -> Option<FactValue>;
}

/// Nothing is known of any.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFacts;

impl BackendFacts for NoFacts {
    fn fact(&self, _: &str, _: Fact) -> Option<FactValue> {
        None
    }
}

/// `backends` as a CEL value.
#[derive(Debug, Clone, Copy)]
pub struct Backends<'a>(pub &'a dyn BackendFacts);

/// `backends["name"]`.
#[derive(Debug, Clone)]
struct Backend<'a> {
    facts: &'a dyn BackendFacts,
    name: String,
}

fn key(index: &dyn Val) -> Result<&str, ExecutionError> {
    match index.downcast_ref::<CelString<'_>>() {
        Some(name) => Ok(name.inner()),
        None => Err(ExecutionError::UnexpectedType {
            got: index.get_type().name().to_owned(),
            want: "string".to_owned(),
        }),
    }
}

impl Indexer for Backends<'_> {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Ok(CowVal::owned(Backend { facts: self.0, name: key(index)?.to_owned() }))
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

impl Indexer for Backend<'_> {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = key(index)?;
        let value = Fact::find(name).and_then(|fact| self.facts.fact(&self.name, fact));
        let value = value.ok_or_else(|| ExecutionError::NoSuchKey(std::sync::Arc::new(name.to_owned())))?;
        Ok(match value {
            FactValue::Number(number) => CowVal::owned(CelDouble::from(number)),
            FactValue::Count(count) => CowVal::owned(CelInt::from(i64::try_from(count).unwrap_or(i64::MAX))),
            FactValue::Word(word) => CowVal::owned(CelString::from(word)),
        })
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

macro_rules! indexed {
    ($name:ident) => {
        impl Val for $name<'_> {
            fn get_type(&self) -> &Type {
                &MAP_TYPE
            }

            fn cel_type() -> &'static Type {
                &MAP_TYPE
            }

            fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
            where
                Self: 'v,
            {
                Some(self)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
            where
                Self: 'v,
            {
                Box::new(self.clone())
            }
        }
    };
}

indexed!(Backends);
indexed!(Backend);
