//! The functions that conditions can call: those of CEL, and a few about time.

use std::sync::{Arc, LazyLock};

use cel::common::ast::{CallExpr, Expr};
use cel::common::types::{CelInt, CelString, CelTimestamp, STRING_TYPE, TIMESTAMP_TYPE};
use cel::common::value::CowVal;
use cel::parser::Macro;
use cel::{Env, ExecutionError};
use chrono::{DateTime, Datelike as _, Timelike as _};
use chrono_tz::Tz;

/// Setting it up takes 70 µs, so there is one for all.
static LIBRARY: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(environment()));

/// What a condition is compiled with and evaluated in.
#[must_use]
pub fn library() -> Arc<Env> {
    Arc::clone(&LIBRARY)
}

fn environment() -> Env {
    const ONCE: &str = "declared once, under names that CEL does not have";
    let mut env = Env::stdlib();
    let zoned = || vec![TIMESTAMP_TYPE, STRING_TYPE];
    env.add_overload("hour", "hour_in_zone", zoned(), |args| {
        Ok(CowVal::owned(CelInt::from(i64::from(local(&args)?.hour()))))
    })
    .expect(ONCE);
    env.add_overload("weekday", "weekday_in_zone", zoned(), |args| {
        Ok(CowVal::owned(CelInt::from(i64::from(local(&args)?.weekday().number_from_monday()))))
    })
    .expect(ONCE);
    env.add_overload("date", "date_in_zone", zoned(), |args| {
        Ok(CowVal::owned(CelString::from(local(&args)?.date_naive().to_string())))
    })
    .expect(ONCE);
    for name in ["hour", "weekday", "date"] {
        env.add_macro(now(name)).expect(ONCE);
    }
    env
}

/// `name(zone)` is short for `name(now, zone)`.
fn now(name: &'static str) -> Macro {
    Macro::global(name, 1, move |helper, _, args| {
        let now = helper.next_expr(Expr::Ident("now".to_owned()));
        let args = std::iter::once(now).chain(args.drain(..)).collect();
        let call = CallExpr { func_name: name.to_owned(), target: None, args };
        Ok(Some(helper.next_expr(Expr::Call(call))))
    })
}

/// The instant of the first argument on the clocks of the zone that the second names.
fn local(args: &[CowVal<'_, '_>]) -> Result<DateTime<Tz>, ExecutionError> {
    let wrong =
        || ExecutionError::function_error("time zone", "an instant and the name of a zone are needed");
    let [instant, zone] = args else { return Err(wrong()) };
    let instant = instant.downcast_ref::<CelTimestamp>().ok_or_else(wrong)?;
    let zone = zone.downcast_ref::<CelString<'_>>().ok_or_else(wrong)?;
    let zone: Tz = zone.inner().parse().map_err(|_| {
        ExecutionError::function_error("time zone", format!("there is no zone `{}`", zone.inner()))
    })?;
    Ok(instant.inner().with_timezone(&zone))
}
