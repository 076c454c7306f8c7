//! Times of the week in a time zone, as numbers that can be compared: minutes since Monday 00:00 on the zone's clocks.
//!
//! The zones' rules, daylight saving included, are those of the time zone database that is part of the binary: all
//! proxies agree, whatever is installed where they run.

use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike as _, Timelike as _};
use chrono_tz::Tz;

use crate::document::TimeWindow;
use crate::problem::{Finding, did_you_mean};

const DAY: u32 = 24 * 60;
const WEEK: u32 = 7 * DAY;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The minute of the week, 0 to 10,079, that the clocks of `zone` show.
#[must_use]
pub fn week_minute(zone: Tz, unix_seconds: u64) -> u32 {
    let utc = i64::try_from(unix_seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    let local = utc.unwrap_or_default().with_timezone(&zone);
    local.weekday().num_days_from_monday() * DAY + local.hour() * 60 + local.minute()
}

/// What is wrong with a window, and in which field of it.
pub(crate) type WindowFinding = (&'static str, Finding);

/// The zone and the minutes of a window.
pub(crate) fn minutes(raw: &TimeWindow) -> Result<(Tz, Vec<RangeInclusive<u128>>), Vec<WindowFinding>> {
    let mut findings = Vec::new();
    let zone = kept("zone", zone(&raw.zone), &mut findings);
    let from = kept("from", clock(&raw.from), &mut findings);
    let to = kept("to", clock(&raw.to), &mut findings);
    let days = kept("weekdays", weekdays(&raw.weekdays), &mut findings);
    if let (Some(from), Some(to)) = (from, to)
        && from % DAY == to % DAY
        && (from, to) != (0, DAY)
    {
        let finding = Finding::new("the window is empty", "leave from and to out for the whole day");
        findings.push(("to", finding));
    }
    match (zone, from, to, days) {
        (Some(zone), Some(from), Some(to), Some(days)) if findings.is_empty() => {
            Ok((zone, ranges(from, to, &days)))
        }
        _ => Err(findings),
    }
}

fn kept<T>(field: &'static str, result: Result<T, Finding>, findings: &mut Vec<WindowFinding>) -> Option<T> {
    result.map_err(|finding| findings.push((field, finding))).ok()
}

/// A window that ends before it begins goes on into the next day, the one after Sunday included.
fn ranges(from: u32, to: u32, days: &[u32]) -> Vec<RangeInclusive<u128>> {
    let length = if to > from { to - from } else { to + DAY - from };
    let mut ranges = Vec::new();
    for day in days {
        let start = day * DAY + from;
        let end = start + length - 1;
        if end < WEEK {
            ranges.push(u128::from(start)..=u128::from(end));
        } else {
            ranges.push(u128::from(start)..=u128::from(WEEK - 1));
            ranges.push(0..=u128::from(end - WEEK));
        }
    }
    ranges
}

fn zone(name: &str) -> Result<Tz, Finding> {
    name.parse().map_err(|_| {
        let known = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
        let hint = did_you_mean(name, known)
            .unwrap_or_else(|| "a name of the IANA database, for example Asia/Shanghai".to_owned());
        Finding::new("there is no such time zone", hint)
    })
}

/// `HH:MM` as minutes; `24:00` is the end of the day.
fn clock(text: &str) -> Result<u32, Finding> {
    let two = |part: &str| (part.len() == 2).then(|| part.parse::<u32>().ok()).flatten();
    let parts = text.split_once(':').and_then(|(hours, minutes)| two(hours).zip(two(minutes)));
    match parts {
        Some((hours @ 0..24, minutes @ 0..60)) => Ok(hours * 60 + minutes),
        Some((24, 0)) => Ok(DAY),
        _ => Err(Finding::new("not a time of day", "write HH:MM, 00:00 to 24:00, in quotes")),
    }
}

/// `mon`, or `mon-fri`, each as a number from 0 on; all of them where none is given.
fn weekdays(texts: &[String]) -> Result<Vec<u32>, Finding> {
    let day = |name: &str| DAYS.iter().position(|day| *day == name);
    let mut wanted = [texts.is_empty(); 7];
    for text in texts {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let Some((first, last)) = day(first).zip(day(last)) else {
            let message = format!("`{}` is no weekday", text.chars().take(20).collect::<String>());
            return Err(Finding::new(message, "write mon, tue, wed, thu, fri, sat, sun, or mon-fri"));
        };
        let span = (last + 7 - first) % 7;
        (0..=span).for_each(|after| wanted[(first + after) % 7] = true);
    }
    Ok((0..7).filter(|day| wanted[*day as usize]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tuesday, 1 December 2026, 13:05 UTC.
    const TUESDAY: u64 = 1_796_130_300;

    fn window(zone: &str, from: &str, to: &str, weekdays: &[&str]) -> TimeWindow {
        let weekdays = weekdays.iter().map(|day| (*day).to_owned()).collect();
        TimeWindow { zone: zone.to_owned(), from: from.to_owned(), to: to.to_owned(), weekdays }
    }

    fn holds(window: &TimeWindow, unix_seconds: u64) -> bool {
        let (zone, ranges) = minutes(window).unwrap();
        let minute = u128::from(week_minute(zone, unix_seconds));
        ranges.iter().any(|range| range.contains(&minute))
    }

    fn hours(text: &str) -> u64 {
        let (hours, minutes) = text.split_once(':').unwrap();
        hours.parse::<u64>().unwrap() * 3_600 + minutes.parse::<u64>().unwrap() * 60
    }

    /// Monday, 30 November 2026, 00:00 UTC, and so long after.
    fn monday(days: u64, time: &str) -> u64 {
        1_795_996_800 + days * 86_400 + hours(time)
    }

    #[test]
    fn the_minute_of_the_week_is_that_of_the_zones_clocks() {
        let at = |zone: Tz, seconds| week_minute(zone, seconds);
        assert_eq!(at(Tz::UTC, TUESDAY), DAY + 13 * 60 + 5);
        assert_eq!(at(Tz::Asia__Shanghai, TUESDAY), DAY + 21 * 60 + 5);
        assert_eq!(at(Tz::Asia__Shanghai, monday(6, "20:00")), 4 * 60, "Sunday evening is Monday there");
        assert_eq!(at(Tz::Asia__Kolkata, TUESDAY), DAY + 18 * 60 + 35);
    }

    #[test]
    fn daylight_saving_is_followed() {
        let noon_in_july = 1_783_080_000; // 2026-07-03 12:00 UTC
        assert_eq!(week_minute(Tz::Europe__Berlin, noon_in_july) % DAY, 14 * 60);
        assert_eq!(week_minute(Tz::Europe__Berlin, TUESDAY) % DAY, 14 * 60 + 5);
    }

    #[test]
    fn a_window_holds_from_its_first_minute_until_before_its_last() {
        let office = window("Asia/Shanghai", "08:00", "18:00", &["mon-fri"]);
        for (days, utc, inside) in [
            (0, "00:00", true),
            (0, "09:59", true),
            (0, "10:00", false),
            (0, "23:59", false),
            (1, "00:00", true),
            (4, "09:59", true),
            (5, "05:00", false),
            (6, "05:00", false),
        ] {
            assert_eq!(holds(&office, monday(days, utc)), inside, "{days} {utc}");
        }
        assert!(!holds(&office, monday(0, "00:00") - 1));
    }

    #[test]
    fn a_window_over_midnight_belongs_to_the_day_on_which_it_begins() {
        let night = window("UTC", "22:00", "06:00", &["fri", "sun"]);
        for (days, time, inside) in [
            (4, "21:59", false),
            (4, "22:00", true),
            (5, "05:59", true),
            (5, "06:00", false),
            (5, "22:00", false),
            (6, "22:30", true),
            (7, "03:00", true),
            (1, "03:00", false),
        ] {
            assert_eq!(holds(&night, monday(days, time)), inside, "{days} {time}");
        }
    }

    #[test]
    fn what_is_left_out_is_the_whole_day_and_the_whole_week() {
        let always = window("UTC", "00:00", "24:00", &[]);
        assert!((0..7 * 24).all(|hour| holds(&always, monday(0, "00:00") + hour * 3_600)));
        let weekend = window("UTC", "00:00", "24:00", &["sat-sun"]);
        assert!(holds(&weekend, monday(5, "00:00")) && !holds(&weekend, monday(7, "00:00")));
        let wrapped = window("UTC", "00:00", "24:00", &["sun-mon"]);
        assert!(holds(&wrapped, monday(0, "12:00")) && !holds(&wrapped, monday(5, "12:00")));
    }

    #[test]
    fn what_is_wrong_is_found_field_by_field() {
        let wrong = window("Asia/Shangai", "8:00", "24:01", &["monday"]);
        let found: Vec<_> =
            minutes(&wrong).unwrap_err().into_iter().map(|(field, finding)| (field, finding.hint)).collect();
        assert_eq!(found[0], ("zone", "did you mean `Asia/Shanghai`?".to_owned()));
        assert_eq!(
            found.iter().map(|(field, _)| *field).collect::<Vec<_>>(),
            ["zone", "from", "to", "weekdays"]
        );
        for (from, to) in [("08:00", "08:00"), ("00:00", "00:00"), ("24:00", "00:00")] {
            let found = minutes(&window("UTC", from, to, &[])).unwrap_err();
            assert_eq!(
                (found[0].0, found[0].1.message.as_str()),
                ("to", "the window is empty"),
                "{from} {to}"
            );
        }
    }
}
