//! Capabilities of a document.

use std::collections::HashMap;

use super::names::{Names, check_name, check_text};
use super::report::Report;
use super::source::escape;
use crate::document;
use crate::policy::{Capability, CapabilityId};
use crate::problem::Finding;

/// The most capabilities of a policy. Every route may have a pool for each.
const MAX_CAPABILITIES: usize = 256;

/// All capabilities, and which is the default. `None` when they are refused.
pub(crate) fn resolve(
    raw: &document::Document,
    names: &Names<'_>,
    report: &mut Report,
) -> Option<(Vec<Capability>, CapabilityId)> {
    let mut capabilities = Vec::new();
    let mut default: Option<(usize, &str)> = None;
    let mut owners = HashMap::new();
    let mut example_owners = HashMap::new();
    for (index, (name, capability)) in raw.capabilities.iter().enumerate() {
        let path = format!("/capabilities/{}", escape(name));
        report.check(&path, check_name(name));
        if capability.default {
            match default {
                None => default = Some((index, name)),
                Some((_, first)) => {
                    let message = format!("`{first}` is the default already");
                    report.error(
                        &format!("{path}/default"),
                        Finding::new(message, "make one capability the default"),
                    );
                }
            }
        }
        warn_if_nobody_has_it(CapabilityId(index as u32), name, names, report);
        capabilities.push(Capability {
            name: name.clone(),
            keywords: keywords(name, capability, &mut owners, report),
            examples: examples(name, capability, &mut example_owners, report),
        });
    }
    warn_of_one_sided_examples(&capabilities, default.map(|(index, _)| index), report);
    if capabilities.len() > MAX_CAPABILITIES {
        let message = format!(
            "a policy has at most {MAX_CAPABILITIES} capabilities, this one has {}",
            capabilities.len()
        );
        report.error("/capabilities", Finding::new(message, "join some"));
    }
    if default.is_none() && report.is_sound("/capabilities") {
        report.error(
            "/capabilities",
            Finding::new("no capability is the default", "write default: true in one of them"),
        );
    }
    Some((capabilities, CapabilityId(default?.0 as u32)))
}

/// The keywords of one capability: lower-case, each once. `owners` knows whose each keyword is.
fn keywords<'a>(
    name: &'a str,
    capability: &document::Capability,
    owners: &mut HashMap<String, &'a str>,
    report: &mut Report,
) -> Vec<String> {
    let mut keywords = Vec::new();
    for (index, keyword) in capability.keywords.iter().enumerate() {
        let path = format!("/capabilities/{}/keywords/{index}", escape(name));
        if report.check(&path, check_text(keyword)).is_none() {
            continue;
        }
        let keyword = keyword.trim().to_lowercase();
        match owners.get(&keyword) {
            Some(owner) if *owner == name => {
                report.warning(&path, Finding::new("this keyword is listed twice", "remove one of the two"));
                continue;
            }
            Some(owner) => {
                let message = format!("this is also a keyword of `{owner}`");
                report.warning(
                    &path,
                    Finding::new(message, "a keyword of two capabilities decides for neither"),
                );
            }
            None => {
                owners.insert(keyword.clone(), name);
            }
        }
        keywords.push(keyword);
    }
    keywords
}

/// Longest example in bytes; of a long text the model sees its beginning and its end alone.
const MAX_EXAMPLE: usize = 4 << 10;

/// The examples of one capability, each once. `owners` knows whose each example is.
fn examples<'a>(
    name: &'a str,
    capability: &document::Capability,
    owners: &mut HashMap<String, &'a str>,
    report: &mut Report,
) -> Vec<String> {
    let mut examples = Vec::new();
    for (index, example) in capability.examples.iter().enumerate() {
        let path = format!("/capabilities/{}/examples/{index}", escape(name));
        let example = example.trim();
        if example.is_empty() || example.len() > MAX_EXAMPLE {
            let message = format!("an example has 1 to {MAX_EXAMPLE} bytes, this one has {}", example.len());
            report.error(&path, Finding::new(message, "write a prompt as a user would, or cut it down"));
            continue;
        }
        match owners.get(example) {
            Some(owner) if *owner == name => {
                report.warning(&path, Finding::new("this example is listed twice", "remove one of the two"));
                continue;
            }
            Some(owner) => {
                let message = format!("this is also an example of `{owner}`");
                let hint = "an example of two capabilities teaches neither; decide for one";
                report.warning(&path, Finding::new(message, hint));
            }
            None => {
                owners.insert(example.to_owned(), name);
            }
        }
        examples.push(example.to_owned());
    }
    examples
}

/// Examples teach what tells capabilities apart: those of one alone teach nothing, and without any of the default, whatever
/// is unlike all examples may be taken for the capability that it is least unlike.
fn warn_of_one_sided_examples(capabilities: &[Capability], default: Option<usize>, report: &mut Report) {
    let with_examples: Vec<usize> =
        (0..capabilities.len()).filter(|index| !capabilities[*index].examples.is_empty()).collect();
    let path = |index: usize| format!("/capabilities/{}", escape(&capabilities[index].name));
    match (with_examples.as_slice(), default) {
        ([], _) | (_, None) => {}
        ([only], _) => report.warning(
            &format!("{}/examples", path(*only)),
            Finding::new(
                "no other capability has examples, so that there is nothing to learn",
                "give the others some too, the default first",
            ),
        ),
        (several, Some(default)) if !several.contains(&default) => report.warning(
            &path(default),
            Finding::new(
                "the default has no examples, the others have",
                "add some of what the default is for, so that it is not taken for one of the others",
            ),
        ),
        _ => {}
    }
}

fn warn_if_nobody_has_it(id: CapabilityId, name: &str, names: &Names<'_>, report: &mut Report) {
    let anybody = names.backends().any(|backend| names.capability_match(backend, id) > 0.0);
    if !anybody && names.capabilities_are_known(report) {
        let finding = Finding::new(
            format!("no backend has the capability `{name}`"),
            "add it to a backend; until then its requests go where those of the default capability go",
        );
        report.warning(&format!("/capabilities/{}", escape(name)), finding);
    }
}
