//! What is wrong with a policy document, each with the lines around it.

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};
use penstock_model::{Problem, Severity};

/// Every problem as text for people. `color` only where it goes to a terminal.
pub(crate) fn problems(file: &str, document: &str, problems: &[Problem], color: bool) -> String {
    let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    // The place stands in the source's name, because miette would count a column in bytes.
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(110)
        .with_context_lines(1)
        .without_primary_span_start();
    let mut text = String::new();
    for problem in problems {
        let place = format!("{file}:{}:{}", problem.line, problem.column);
        let source = NamedSource::new(place, document.to_owned());
        let report = Report::new(diagnostic(document, problem)).with_source_code(source);
        handler.render_report(&mut text, report.as_ref()).expect("writing to a string cannot fail");
        text.push('\n');
    }
    text
}

fn diagnostic(document: &str, problem: &Problem) -> MietteDiagnostic {
    let severity = match problem.severity {
        Severity::Error => miette::Severity::Error,
        Severity::Warning => miette::Severity::Warning,
    };
    let mut diagnostic = MietteDiagnostic::new(problem.message.clone()).with_severity(severity);
    if !problem.hint.is_empty() {
        diagnostic = diagnostic.with_help(problem.hint.clone());
    }
    match span(document, problem.line, problem.column) {
        Some((start, length)) => {
            let label =
                if problem.path.is_empty() { "the document".to_owned() } else { problem.path.clone() };
            diagnostic.with_label(LabeledSpan::at(start..start + length, label))
        }
        None => diagnostic,
    }
}

/// From the problem's place to the end of its line: byte offset and length. `None` when the place is unknown.
fn span(document: &str, line: u32, column: u32) -> Option<(usize, usize)> {
    let (line, column) = (line.checked_sub(1)? as usize, column.checked_sub(1)? as usize);
    let text = document.split_inclusive('\n').nth(line)?;
    let start: usize = document.split_inclusive('\n').take(line).map(str::len).sum();
    let at = text.char_indices().nth(column).map_or(text.trim_end().len(), |(at, _)| at);
    Some((start + at, text[at..].trim_end().len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: u32, column: u32) -> Problem {
        Problem {
            path: "/backends/聊天/base_url".to_owned(),
            line,
            column,
            message: "not a URL".to_owned(),
            hint: "write http://HOST:PORT/v1".to_owned(),
            severity: Severity::Error,
        }
    }

    #[test]
    fn a_problem_is_shown_with_its_line_and_what_to_do() {
        let document = "version: 1\nbackends:\n  聊天: {base_url: nowhere}\n";
        let text = problems("policy.yaml", document, &[problem(3, 18)], false);
        let expected = "  × not a URL
   ╭─[policy.yaml:3:18]
 2 │ backends:
 3 │   聊天: {base_url: nowhere}
   ·                    ────┬───
   ·                        ╰── /backends/聊天/base_url
   ╰────
  help: write http://HOST:PORT/v1

";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_problem_without_a_place_is_shown_all_the_same() {
        let text = problems("policy.yaml", "version: 1\n", &[problem(0, 0), problem(99, 1)], false);
        assert_eq!(text.matches("× not a URL").count(), 2);
    }

    #[test]
    fn a_column_counts_characters_and_not_bytes() {
        assert_eq!(span("聊天: x\n", 1, 5), Some(("聊天: ".len(), 1)));
        assert_eq!(span("a\n", 1, 9), Some((1, 0)));
        assert_eq!(span("", 1, 1), None);
    }
}
