//! Aligned columns without lines, which read as well in a pipe as in a terminal.

use comfy_table::{ContentArrangement, Table, presets};

/// `header` and `rows` as text; each row has as many cells as the header. CJK characters count two columns.
pub(crate) fn table<H: Into<String>>(header: Vec<H>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.into_iter().map(Into::into).collect::<Vec<String>>());
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
