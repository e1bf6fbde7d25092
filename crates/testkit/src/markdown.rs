//! What documents show: blocks of code, the commands in them, links and the anchors that links may name.

use std::collections::BTreeMap;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What a fence says behind its three marks; empty without, and for indented blocks.
    pub language: String,
    /// The code.
    pub text: String,
    /// Where the code is in the document, bytes. The indentation of its lines is in it.
    pub range: Range<usize>,
    /// The line of the document that the code begins on, from 1.
    pub line: usize,
}

/// A command in a block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What a shell runs: lines that end with a backslash are joined.
    pub text: String,
    /// Its first line in the document, from 1.
    pub line: usize,
}

/// A link, or a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it leads to, as written.
    pub to: String,
    /// Its line in the document, from 1.
    pub line: usize,
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES)
}

/// Returns the number of a byte's line, from 1.
fn line_of(text: &str, byte: usize) -> usize {
    text[..byte].matches('\n').count() + 1
}

/// Returns the blocks of code of a document.
#[must_use]
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = None;
    for (event, range) in parser(text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let language =
                    if let CodeBlockKind::Fenced(language) = kind { language.to_string() } else { String::new() };
                open = Some(Block { language, text: String::new(), range: range.end..range.end, line: 0 });
            }
            Event::Text(code) => {
                let Some(block) = &mut open else { continue };
                if block.text.is_empty() {
                    (block.range.start, block.line) = (range.start, line_of(text, range.start));
                }
                block.text.push_str(&code);
                block.range.end = range.end;
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
            _ => {}
        }
    }
    blocks
}

impl Block {
    /// Returns the commands in the block: lines behind a prompt (`$ `) or, in blocks without any, lines that begin with `program`.
    #[must_use]
    pub fn commands(&self, program: &str) -> Vec<Command> {
        const PROMPT: &str = "$ ";
        let prompted = self.text.lines().any(|line| line.trim_start().starts_with(PROMPT));
        let mut commands: Vec<Command> = Vec::new();
        let mut lines = self.text.lines().zip(self.line..);
        while let Some((first, line)) = lines.next() {
            let first = first.trim_start();
            let begins = if prompted { first.strip_prefix(PROMPT) } else { Some(first) };
            let Some(begins) = begins.filter(|text| prompted || text.split(' ').next() == Some(program)) else {
                continue;
            };
            let mut text = begins.to_owned();
            while let Some(joined) = text.strip_suffix('\\') {
                let next = lines.next().map_or("", |(next, _)| next.trim_start());
                text = format!("{joined}{}", next.strip_prefix("> ").unwrap_or(next));
            }
            commands.push(Command { text, line });
        }
        commands
    }
}

/// Returns pieces of code within sentences, with their lines.
#[must_use]
pub fn inline_code(text: &str) -> Vec<Command> {
    let events = parser(text).into_offset_iter();
    events
        .filter_map(|(event, range)| match event {
            Event::Code(code) => Some(Command { text: code.to_string(), line: line_of(text, range.start) }),
            _ => None,
        })
        .collect()
}

/// Returns the links and pictures of a document.
#[must_use]
pub fn links(text: &str) -> Vec<Link> {
    let events = parser(text).into_offset_iter();
    events
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(Link { to: dest_url.to_string(), line: line_of(text, range.start) })
            }
            _ => None,
        })
        .collect()
}

/// Returns the names that links to parts of a document may have: those of headings as sites derive them from their text, and `id`s.
#[must_use]
pub fn anchors(text: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let name = slug(&heading.take().unwrap_or_default());
                let times = used.entry(name.clone()).or_default();
                anchors.push(if *times == 0 { name } else { format!("{name}-{times}") });
                *times += 1;
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => anchors.extend(ids(&html)),
            _ => {}
        }
    }
    anchors
}

/// Returns the values of `id="…"` in a piece of HTML.
fn ids(html: &str) -> impl Iterator<Item = String> + '_ {
    html.split("id=\"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(id, _)| id.to_owned())
}

/// Returns the name of a heading: lower case, without punctuation, with hyphens for blanks.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# A `b`, c\n\n[x](y.md#z) and `fxscope run`\n\n    $ fxscope run \\\n        -- ./app\n    text\n\n\
                            ```console\n$ ls\n```\n\n    fxscope events\n    other\n\n## A b c\n<a id=\"here\"></a>\n";

    fn texts(commands: Vec<Command>) -> Vec<(String, usize)> {
        commands.into_iter().map(|command| (command.text, command.line)).collect()
    }

    #[test]
    fn commands_have_their_lines_and_are_joined() {
        let blocks = blocks(DOCUMENT);
        let of = |i: usize| texts(blocks[i].commands("fxscope"));
        assert_eq!(of(0), [("fxscope run -- ./app".to_owned(), 5)]);
        assert_eq!(of(1), [("ls".to_owned(), 10)]);
        assert_eq!(of(2), [("fxscope events".to_owned(), 13)]);
        assert_eq!(blocks[1].language, "console");
        assert_eq!(&DOCUMENT[blocks[1].range.clone()], "$ ls\n");
        assert_eq!(texts(inline_code(DOCUMENT)), [("b".to_owned(), 1), ("fxscope run".to_owned(), 3)]);
    }

    #[test]
    fn links_and_anchors_are_those_that_sites_make() {
        assert_eq!(links(DOCUMENT), [Link { to: "y.md#z".to_owned(), line: 3 }]);
        assert_eq!(anchors(DOCUMENT), ["a-b-c", "a-b-c-1", "here"]);
    }
}
