//! The documents and the code name the same keys.

use crate::keys::BINDINGS;

#[test]
fn the_table_of_keys_in_the_documents_is_the_one_in_the_code() {
    let page = include_str!("../../../../docs/terminal.md");
    let table: String = BINDINGS.iter().map(|(keys, does)| format!("| {keys} | {does} |\n")).collect();
    assert!(page.contains(&table), "docs/terminal.md should have these rows:\n{table}");
}
