//! Holds documents with figures to what the program prints: a figure in them is never typed in.
//!
//! Between `<!-- alloquet ARGUMENTS -->` and `<!-- end -->`, each on a line of its own, stands what the program
//! prints with these arguments (split at spaces) in the project's root. With `ALLOQUET_SPLICE=1` in the environment
//! the test writes it there instead of failing.

use std::path::Path;

use crate::project::Project;
use crate::support::alloquet;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SPLICE: &str = "ALLOQUET_SPLICE";
const END: &str = "<!-- end -->";

/// A document with what the program prints today in each of its blocks.
#[derive(Debug, PartialEq)]
struct Spliced {
    text: String,
    /// The arguments of all its blocks.
    blocks: Vec<String>,
    /// Those of them whose text was another, with the first line that was.
    stale: Vec<String>,
}

/// Puts what `print` gives for a block's arguments into each block whose text is another; space around it is none of
/// its text.
fn splice(document: &str, mut print: impl FnMut(&str) -> String) -> Result<Spliced, String> {
    let mut spliced = Spliced {
        text: String::new(),
        blocks: Vec::new(),
        stale: Vec::new(),
    };
    let mut lines = document.split_inclusive('\n');
    while let Some(line) = lines.next() {
        spliced.text.push_str(line);
        let Some(arguments) = arguments(line) else {
            if line.trim() == END {
                return Err(format!("there is an {END} of no block"));
            }
            continue;
        };
        let mut old = String::new();
        let end = loop {
            match lines.next() {
                Some(line) if line.trim() == END => break line,
                Some(line) if self::arguments(line).is_none() => old.push_str(line),
                _ => return Err(format!("the block '{arguments}' has no {END}")),
            }
        };
        let new = print(arguments);
        if old.trim() == new.trim() {
            spliced.text.push_str(&old);
        } else {
            let difference = first_difference(old.trim(), new.trim());
            spliced.stale.push(format!("{arguments}\n{difference}"));
            spliced.text.push_str(&format!("\n{}\n\n", new.trim()));
        }
        spliced.text.push_str(end);
        spliced.blocks.push(arguments.to_owned());
    }
    Ok(spliced)
}

/// The arguments of the block that a line opens.
fn arguments(line: &str) -> Option<&str> {
    let comment = line.trim().strip_prefix("<!-- alloquet ")?;
    comment.strip_suffix(" -->").map(str::trim)
}

fn first_difference(old: &str, new: &str) -> String {
    let (mut old, mut new) = (old.lines(), new.lines());
    loop {
        let pair = (old.next(), new.next());
        if pair.0 != pair.1 || pair == (None, None) {
            let shown = |line: Option<&str>| line.unwrap_or("(nothing more)").to_owned();
            return format!("  has:    {}\n  prints: {}", shown(pair.0), shown(pair.1));
        }
    }
}

/// Checks the document, or rewrites it; what must be done about it as an error.
fn check(path: &Path, rewrite: bool, print: impl FnMut(&str) -> String) -> Result<(), String> {
    let name = path.file_name().unwrap().display();
    let document = std::fs::read_to_string(path).unwrap();
    let spliced = splice(&document, print).map_err(|error| format!("{name}: {error}"))?;
    if spliced.blocks.is_empty() {
        return Err(format!(
            "{name} has no block '<!-- alloquet ARGUMENTS -->': its figures cannot be checked"
        ));
    }
    if spliced.stale.is_empty() {
        return Ok(());
    }
    if rewrite {
        std::fs::write(path, spliced.text).unwrap();
        return Ok(());
    }
    Err(format!(
        "{name} is not what the program prints for\n{}\nrewrite these blocks: \
         {SPLICE}=1 cargo test -p alloquet --test integration readme",
        spliced.stale.join("\n")
    ))
}

fn stdout(command: &mut assert_cmd::Command) -> String {
    let output = command.assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

#[test]
fn the_documents_are_what_the_program_prints() {
    let rewrite = std::env::var_os(SPLICE).is_some_and(|value| value == "1");
    let print = |arguments: &str| {
        let mut command = alloquet();
        stdout(command.current_dir(ROOT).args(arguments.split_whitespace()))
    };
    for document in [
        "README.md",
        "docs/column-costs.md",
        "docs/allocator-settings.md",
    ] {
        if let Err(what) = check(&Path::new(ROOT).join(document), rewrite, print) {
            panic!("{what}");
        }
    }
}

#[test]
fn stale_blocks_are_refused_and_then_rewritten() {
    let project = Project::new();
    let print = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        stdout(&mut project.alloquet(&arguments))
    };
    let current = stdout(&mut project.alloquet(&["list"]));
    let readme = project.write(
        "README.md",
        &format!(
            "# Title\n<!-- alloquet list -->\n{current}<!-- end -->\nBetween.\n\n\
             <!-- alloquet list --bench-data bench-data -->\nold\n<!-- end -->\nLast.\n"
        ),
    );
    let refused = check(&readme, false, print).unwrap_err();
    for said in [
        "list --bench-data bench-data\n  has:    old\n",
        "ALLOQUET_SPLICE=1",
    ] {
        assert!(refused.contains(said), "{refused}");
    }
    assert!(!refused.contains("for\nlist\n"), "{refused}");

    check(&readme, true, print).unwrap();
    let written = std::fs::read_to_string(&readme).unwrap();
    let text = current.trim();
    assert_eq!(
        written,
        format!(
            "# Title\n<!-- alloquet list -->\n{current}<!-- end -->\nBetween.\n\n\
             <!-- alloquet list --bench-data bench-data -->\n\n{text}\n\n<!-- end -->\nLast.\n"
        )
    );
    check(&readme, false, print).unwrap();
}

#[test]
fn a_document_without_a_whole_block_is_refused() {
    let project = Project::new();
    let refused = |document: &str, said: &str| {
        let path = project.write("README.md", document);
        for rewrite in [false, true] {
            let refused = check(&path, rewrite, |_| "new".to_owned()).unwrap_err();
            assert!(refused.contains(said), "{refused}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), document);
        }
    };
    refused("no figures\n", "has no block");
    refused("<!-- alloquet a -->\nold\n", "'a' has no <!-- end -->");
    refused(
        "<!-- alloquet a -->\n<!-- alloquet b -->\n<!-- end -->\n",
        "'a' has no <!-- end -->",
    );
    refused("<!-- end -->\n", "of no block");
}

#[test]
fn the_last_line_may_end_the_document() {
    let spliced = splice("<!-- alloquet a  b -->\n<!-- end -->", |arguments| {
        assert_eq!(arguments, "a  b");
        "new\n".to_owned()
    });
    let spliced = spliced.unwrap();
    assert_eq!(
        spliced.text,
        "<!-- alloquet a  b -->\n\nnew\n\n<!-- end -->"
    );
    assert_eq!(spliced.stale.len(), 1);
}
