//! Text to JSON value, keeping where everything stands.
//!
//! YAML 1.2 with its core schema, of which JSON is a part: `no` and `on` are text, `1_000` is text. Only what has an
//! equal in JSON is taken. Aliases are, within the same bounds as everything else.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use saphyr::{Scalar, ScalarStyle};
use saphyr_parser::{Event, Parser, Span, Tag};
use serde_json::Value;

use super::report::{Place, Report};
use crate::problem::Finding;

/// The largest document, in bytes.
pub(crate) const MAX_BYTES: usize = 4 << 20;
/// The most values in a document, after aliases were replaced.
const MAX_VALUES: usize = 250_000;
/// The deepest nesting. A policy needs eight.
const MAX_DEPTH: usize = 24;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) value: Value,
    pub(crate) spots: Spots,
}

/// Where a value and its parts stand. Has the shape of the value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spots {
    pub(crate) place: Place,
    /// Of the key, where the value is a field.
    pub(crate) key: Option<Place>,
    /// Of the first character of a scalar's text, when the source spells the text as it is, line by line.
    pub(crate) text: Option<Place>,
    /// By key, or by index as a decimal.
    parts: BTreeMap<String, Spots>,
}

impl Spots {
    /// Is it a list or a map with entries?
    pub(crate) fn is_collection(&self) -> bool {
        !self.parts.is_empty()
    }

    /// What stands at a JSON pointer, or the nearest thing around it.
    pub(crate) fn nearest(&self, pointer: &str) -> &Self {
        let mut spots = self;
        for token in pointer.split('/').skip(1) {
            match spots.parts.get(&unescape(token)) {
                Some(part) => spots = part,
                None => break,
            }
        }
        spots
    }
}

/// One token of a JSON pointer (RFC 6901).
pub(crate) fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Parses `text`. `None` when it cannot be read as one document; `report` has the reason.
pub(crate) fn parse(text: &str, report: &mut Report) -> Option<Source> {
    if text.len() > MAX_BYTES {
        report
            .error("", Finding::new(format!("a document has at most {MAX_BYTES} bytes"), "split the policy"));
        return None;
    }
    let mut builder = Builder { report, open: Vec::new(), anchors: HashMap::new(), values: 0, root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let hint = "check indentation, quotes and colons; YAML is not indented with tabs";
                let finding = Finding::new(format!("not YAML or JSON: {}", error.info()), hint);
                builder.report.error_at("", place(*error.marker()), finding);
                return None;
            }
        };
        if let Err(finding) = builder.event(event, span) {
            let path = builder.path();
            builder.report.error_at(&path, place(span.start), finding);
            return None;
        }
    }
    if builder.root.is_none() {
        report.error(
            "",
            Finding::new("the document is empty", "start from the demo policy: penstock policy show"),
        );
        return None;
    }
    builder.root
}

fn place(marker: saphyr_parser::Marker) -> Place {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Place { line: number(marker.line()), column: number(marker.col() + 1) }
}

/// Builds the value from the parser's events, without recursion.
struct Builder<'a> {
    report: &'a mut Report,
    open: Vec<Open>,
    anchors: HashMap<usize, Source>,
    values: usize,
    root: Option<Source>,
}

/// A collection that is not closed yet.
struct Open {
    source: Source,
    anchor: usize,
    /// The key whose value comes next.
    key: Option<(String, Place)>,
}

impl Builder<'_> {
    /// JSON pointer of the value that comes next, or of the map whose next key does.
    fn path(&self) -> String {
        let token = |open: &Open| match (&open.key, &open.source.value) {
            (Some((key, _)), _) => Some(escape(key)),
            (None, Value::Array(items)) => Some(items.len().to_string()),
            (None, _) => None,
        };
        self.open.iter().filter_map(token).map(|token| format!("/{token}")).collect()
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Finding> {
        match event {
            Event::Scalar(text, style, anchor, tag) if self.expects_key() => {
                refuse_tag(tag.as_deref())?;
                self.remember(anchor, || scalar_source(Value::String(text.to_string()), &text, style, span))?;
                self.key(text.into_owned(), place(span.start))
            }
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.as_deref())?;
                let value = scalar(text.clone(), style, tag.as_ref())?;
                self.finish(scalar_source(value, &text, style, span), anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.start(Value::Array(Vec::new()), anchor, tag.as_deref(), span)
            }
            Event::MappingStart(anchor, tag) => {
                self.start(Value::Object(Default::default()), anchor, tag.as_deref(), span)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.finish(open.source, open.anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::DocumentStart(_) if self.root.is_some() => Err(Finding::new(
                "there is more than one document",
                "write one policy per file, without `---` between",
            )),
            _ => Ok(()),
        }
    }

    fn expects_key(&self) -> bool {
        self.open.last().is_some_and(|open| open.source.value.is_object() && open.key.is_none())
    }

    fn key(&mut self, key: String, place: Place) -> Result<(), Finding> {
        if key == "<<" {
            return Err(Finding::new(
                "merge keys are not part of YAML 1.2",
                "repeat the fields, or alias a whole value",
            ));
        }
        let path = self.path();
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        if open.source.value.get(&key).is_some() {
            let path = format!("{path}/{}", escape(&key));
            let finding = Finding::new(format!("the key `{key}` is given twice"), "keep one of the two");
            self.report.error_at(&path, place, finding);
        }
        open.key = Some((key, place));
        Ok(())
    }

    fn start(&mut self, value: Value, anchor: usize, tag: Option<&Tag>, span: Span) -> Result<(), Finding> {
        refuse_tag(tag)?;
        if self.expects_key() {
            return Err(Finding::new("a key must be text", "write it as text"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(Finding::new(
                format!("values nest more than {MAX_DEPTH} deep"),
                "a policy needs eight levels",
            ));
        }
        let spots = Spots { place: place(span.start), ..Spots::default() };
        self.open.push(Open { source: Source { value, spots }, anchor, key: None });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Finding> {
        let Some(mut source) = self.anchors.get(&anchor).cloned() else {
            return Err(Finding::new("an alias within the value it names", "write the value out"));
        };
        self.count(count(&source.value))?;
        if self.expects_key() {
            let Value::String(key) = source.value else {
                return Err(Finding::new("a key must be text", "write it as text"));
            };
            return self.key(key, place(span.start));
        }
        // The parts keep the place where they are written; the whole is where it is used.
        source.spots.place = place(span.start);
        source.spots.text = None;
        self.finish(source, 0)
    }

    fn count(&mut self, values: usize) -> Result<(), Finding> {
        self.values += values;
        if self.values > MAX_VALUES {
            return Err(Finding::new(
                format!("a document has at most {MAX_VALUES} values"),
                "split the policy",
            ));
        }
        Ok(())
    }

    /// Keeps a copy of an anchored value. Copies count like values.
    fn remember(&mut self, anchor: usize, source: impl FnOnce() -> Source) -> Result<(), Finding> {
        if anchor != 0 {
            let source = source();
            self.count(count(&source.value))?;
            self.anchors.insert(anchor, source);
        }
        Ok(())
    }

    /// A value is complete: put it into the collection around it.
    fn finish(&mut self, mut source: Source, anchor: usize) -> Result<(), Finding> {
        self.count(1)?;
        self.remember(anchor, || source.clone())?;
        let Some(open) = self.open.last_mut() else {
            self.root = Some(source);
            return Ok(());
        };
        match &mut open.source.value {
            Value::Array(items) => {
                open.source.spots.parts.insert(items.len().to_string(), source.spots);
                items.push(source.value);
            }
            Value::Object(fields) => {
                let Some((key, place)) = open.key.take() else { return Ok(()) };
                source.spots.key = Some(place);
                open.source.spots.parts.insert(key.clone(), source.spots);
                fields.insert(key, source.value);
            }
            _ => {}
        }
        Ok(())
    }
}

/// How many values `value` holds, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0usize,
    }
}

fn refuse_tag(tag: Option<&Tag>) -> Result<(), Finding> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() => {
            Err(Finding::new("tags have no meaning here", "remove the tag"))
        }
        _ => Ok(()),
    }
}

fn scalar_source(value: Value, text: &str, style: ScalarStyle, span: Span) -> Source {
    let start = place(span.start);
    // Where an escape or a folded line lies between the text and its source, columns cannot be told.
    let spelled_out =
        |quotes: usize| span.len() == text.chars().count() + quotes && span.start.line() == span.end.line();
    let text = match style {
        ScalarStyle::Plain if spelled_out(0) => Some(start),
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if spelled_out(2) => {
            Some(Place { column: start.column + 1, ..start })
        }
        // The span begins at the first line of the text, behind its indentation.
        ScalarStyle::Literal if !text.starts_with(char::is_whitespace) => Some(start),
        _ => None,
    };
    Source { value, spots: Spots { place: start, text, ..Spots::default() } }
}

/// The value of a scalar by YAML's core schema.
fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Cow<'_, Tag>>) -> Result<Value, Finding> {
    let not_json =
        || Finding::new("not a value that JSON has", "write a finite number, or put the text in quotes");
    Ok(match Scalar::parse_from_cow_and_metadata(text, style, tag).ok_or_else(not_json)? {
        Scalar::Null => Value::Null,
        Scalar::Boolean(value) => value.into(),
        Scalar::Integer(value) => value.into(),
        Scalar::FloatingPoint(value) => float(*value).ok_or_else(not_json)?,
        Scalar::String(text) => text.into_owned().into(),
    })
}

/// A whole number stays one, however it is written: `2.0` is 2.
fn float(value: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    if value.fract() == 0.0 && value.abs() < EXACT {
        return Some(Value::from(value as i64));
    }
    serde_json::Number::from_f64(value).map(Value::Number)
}
