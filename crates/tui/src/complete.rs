//! Completion of what is typed: files after `@`, commands after `/`, arguments after a command. Pure; `files` looks for
//! files.

use multitap_event::ApprovalMode;
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

use crate::app::step;
use crate::commands::{self, Offered};
use crate::files::SHOWN;

/// The text to complete, from the byte where it begins to the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) from: usize,
    pub(crate) query: String,
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A file after an `@`.
    Mention,
    /// The file that a command takes.
    Path,
    /// A command, or an argument of the words before it.
    Command { under: Vec<String> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) shown: String,
    pub(crate) does: String,
    pub(crate) text: String,
    /// No argument needs to follow: Enter may send it.
    pub(crate) is_whole: bool,
}

impl Item {
    /// An item that is inserted as it is shown.
    pub(crate) fn new(shown: impl Into<String>, does: impl Into<String>) -> Self {
        let shown = shown.into();
        Self { text: shown.clone(), shown, does: does.into(), is_whole: true }
    }
}

/// The effect of Enter while completions are shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    AsTyped,
    /// Insert this, and send it if it is whole.
    Run(Item),
    FillIn(Item),
    Nothing,
}

fn begins(text: &str, query: &str) -> bool {
    text.get(..query.len()).is_some_and(|head| head.eq_ignore_ascii_case(query))
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) wanted: Wanted,
    pub(crate) items: Vec<Item>,
    pub(crate) chosen: usize,
    /// The user selected one with the arrows.
    moved: bool,
}

impl Completion {
    pub(crate) fn new(wanted: Wanted, items: Vec<Item>) -> Option<Self> {
        (!items.is_empty()).then_some(Self { wanted, items, chosen: 0, moved: false })
    }

    /// The effect of Enter. A command runs only if it is typed in full, or if no other begins with the typed text.
    pub(crate) fn entered(&self) -> Entered {
        let Some(item) = self.items.get(self.chosen) else { return Entered::AsTyped };
        let query = self.wanted.query.as_str();
        let under = match &self.wanted.what {
            What::Command { under } => under,
            // The best match is not always the file that is named.
            What::Path if !self.moved && self.items.iter().any(|item| item.shown == query) => return Entered::AsTyped,
            What::Path => return Entered::Run(item.clone()),
            What::Mention => return Entered::FillIn(item.clone()),
        };
        if self.moved {
            return Entered::Run(item.clone());
        }
        // Other models may exist than those listed, and arguments may be optional.
        let is_open = under.first().is_some_and(|first| first == "model");
        let is_vague = !under.is_empty() && (is_open || query.is_empty());
        let is_own = under.is_empty() && commands::find(&format!("/{query}")).is_some();
        if query == item.text.trim_end() || is_vague || is_own {
            return Entered::AsTyped;
        }
        let mut alike = self.items.iter().filter(|item| begins(&item.text, query));
        match (alike.next(), alike.next()) {
            (Some(_), _) if query.is_empty() => Entered::Nothing,
            (Some(only), None) => Entered::Run(only.clone()),
            (Some(_), Some(_)) => Entered::FillIn(item.clone()),
            (None, _) => Entered::AsTyped,
        }
    }

    pub(crate) fn choose(&mut self, down: bool) {
        self.moved = true;
        self.chosen = step(self.chosen, down, self.items.len());
    }
}

pub(crate) fn wanted(text: &str, cursor: usize) -> Option<Wanted> {
    let before = &text[..cursor];
    if let Some(rest) = before.strip_prefix('/')
        && !before.contains('\n')
    {
        if let Some(path) = rest.strip_prefix("image ").map(str::trim_start) {
            let Path { path: query, rest } = first_path(path);
            // After the path come words.
            return rest.is_none().then(|| Wanted { from: cursor - path.len(), query, what: What::Path });
        }
        let mut words: Vec<&str> = rest.split(' ').collect();
        let query = words.pop()?.to_owned();
        let from = cursor - query.len();
        let under = words.into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect();
        return Some(Wanted { from, query, what: What::Command { under } });
    }
    let at = before.rfind('@')?;
    let begins = before[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
    let query = &before[at + 1..];
    let ends = query.replace("\\ ", "").contains(char::is_whitespace);
    (begins && !ends).then(|| Wanted { from: at, query: query.replace("\\ ", " "), what: What::Mention })
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path<'a> {
    /// Without quotes and escapes.
    pub(crate) path: String,
    /// The text after the path; `None` if the path may continue.
    pub(crate) rest: Option<&'a str>,
}

/// Reads a path up to a blank that is neither quoted nor escaped.
pub(crate) fn first_path(line: &str) -> Path<'_> {
    let (mut path, mut quote, mut letters) = (String::new(), None, line.char_indices());
    while let Some((at, letter)) = letters.next() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => quote = Some(letter),
            (blank, None) if blank.is_whitespace() => return Path { path, rest: Some(line[at..].trim_start()) },
            // A backslash elsewhere is part of the path.
            ('\\', None) if line[at + 1..].starts_with([' ', '\'', '"', '\\', '(', ')', '&']) => {
                path.extend(letters.next().map(|(_, escaped)| escaped));
            }
            (letter, _) => path.push(letter),
        }
    }
    Path { path, rest: None }
}

/// The commands or arguments that match.
pub(crate) fn commands(wanted: &Wanted, agents: &[Offered], models: &[Item], modes: &[ApprovalMode]) -> Vec<Item> {
    let What::Command { under } = &wanted.what else { return Vec::new() };
    let all = commands::all(agents);
    let Some((first, deeper)) = under.split_first() else { return matching(all.iter().map(command), &wanted.query) };
    if deeper.is_empty() {
        match first.as_str() {
            "mode" => return matching(modes.iter().copied().map(mode), &wanted.query),
            "model" => return matching(models.iter().cloned(), &wanted.query),
            _ => {}
        }
    }
    let mut found = all.iter().find(|offered| offered.name == *first);
    for word in deeper {
        found = found.and_then(|offered| offered.words.iter().find(|below| below.name == *word));
    }
    matching(found.iter().flat_map(|offered| &offered.words).map(word), &wanted.query)
}

pub(crate) fn files(what: &What, found: Vec<String>) -> Vec<Item> {
    let sign = if *what == What::Mention { "@" } else { "" };
    let item = |path: String| {
        // After a folder the path may go on.
        let end = if path.ends_with('/') { "" } else { " " };
        let typed = path.replace(' ', "\\ ");
        Item { text: format!("{sign}{typed}{end}"), shown: path, does: String::new(), is_whole: false }
    };
    found.into_iter().map(item).collect()
}

fn command(offered: &Offered) -> Item {
    let shown = format!("/{} {}", offered.name, offered.argument).trim_end().to_owned();
    let end = if offered.argument.is_empty() && offered.words.is_empty() { "" } else { " " };
    Item { shown, does: offered.does.clone(), text: format!("{}{end}", offered.name), is_whole: offered.is_whole() }
}

fn word(offered: &Offered) -> Item {
    let item = command(offered);
    Item { shown: item.shown.trim_start_matches('/').to_owned(), ..item }
}

pub(crate) fn mode(mode: ApprovalMode) -> Item {
    let does = match mode {
        ApprovalMode::Ask => "ask before every change",
        ApprovalMode::AskDangerous => "ask only before dangerous actions",
        ApprovalMode::AutoEdit => "edit files without asking",
        ApprovalMode::AutoAll => "run everything without asking",
        ApprovalMode::Plan => "read and plan, change nothing",
        ApprovalMode::DontAsk => "never ask; deny what no rule allows",
    };
    Item::new(mode.option_word().to_owned(), does)
}

/// The items that match, the best first. For an empty query all of them, in their order.
pub(crate) fn matching(items: impl Iterator<Item = Item>, query: &str) -> Vec<Item> {
    if query.is_empty() {
        return items.collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::new(query, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
    let mut found: Vec<((bool, bool, u32), Item)> = items
        .filter_map(|item| {
            let mut space = Vec::new();
            let score = pattern.score(nucleo_matcher::Utf32Str::new(&item.text, &mut space), &mut matcher)?;
            // An item typed in full comes first, then those that begin with the query.
            let (whole, begins) = (item.text.trim_end() == query, begins(&item.text, query));
            Some(((whole, begins, score), item))
        })
        .collect();
    found.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    found.into_iter().map(|(_, item)| item).take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_wanted(text: &str, expected: Option<(usize, &str, What)>) {
        let expected = expected.map(|(from, query, what)| Wanted { from, query: query.to_owned(), what });
        assert_eq!(wanted(text, text.len()), expected, "{text}");
    }

    fn under(words: &[&str]) -> What {
        What::Command { under: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    #[test]
    fn what_is_typed_says_what_is_wanted() {
        check_wanted("/", Some((1, "", under(&[]))));
        check_wanted("/mo", Some((1, "mo", under(&[]))));
        check_wanted("/memory ad", Some((8, "ad", under(&["memory"]))));
        check_wanted("/image src/c", Some((7, "src/c", What::Path)));
        check_wanted("/image a\\ b", Some((7, "a b", What::Path)));
        check_wanted("/image 'a b", Some((7, "a b", What::Path)));
        check_wanted("/image a.png what", None);
        check_wanted("see @src/ma", Some((4, "src/ma", What::Mention)));
        check_wanted("see @a\\ b", Some((4, "a b", What::Mention)));
        check_wanted("日本 (@x", Some((8, "x", What::Mention)));
        for text in ["", "hello", "me@example.org", "see @a and", "line\n/mode"] {
            check_wanted(text, None);
        }
    }

    fn check_offered(text: &str, expected: &[&str]) {
        let add = Offered { name: "add".to_owned(), argument: "text".to_owned(), ..Offered::default() };
        let memory = Offered { name: "memory".to_owned(), words: vec![add], ..Offered::default() };
        let items = commands(&wanted(text, text.len()).unwrap(), &[memory], &[], &ApprovalMode::ALL);
        let texts: Vec<_> = items.iter().map(|item| item.text.as_str()).collect();
        assert_eq!(texts, expected, "{text}");
    }

    #[test]
    fn commands_and_what_follows_them_are_offered() {
        check_offered("/mod", &["model ", "mode "]);
        check_offered("/mode", &["mode ", "model "]);
        check_offered("/mem", &["memory "]);
        check_offered("/memory ", &["add "]);
        check_offered("/share o", &["on", "off"]);
        check_offered("/mode auto", &["auto-edit", "auto-all"]);
        check_offered("/zzz", &[]);
        check_offered("/zzz ", &[]);
    }

    #[test]
    fn a_path_ends_at_a_blank_that_is_its_own() {
        for (line, path, rest) in [
            ("cat.png", "cat.png", None),
            ("cat.png ", "cat.png", Some("")),
            ("cat.png  what is it", "cat.png", Some("what is it")),
            ("a\\ b.png x", "a b.png", Some("x")),
            ("'a b.png' x", "a b.png", Some("x")),
            ("\"it's.png\" x", "it's.png", Some("x")),
            ("c:\\dir\\cat.png x", "c:\\dir\\cat.png", Some("x")),
            ("'open", "open", None),
        ] {
            assert_eq!(first_path(line), Path { path: path.to_owned(), rest }, "{line}");
        }
    }

    #[test]
    fn a_path_with_a_space_is_put_in_so_that_it_is_one() {
        let items = files(&What::Mention, vec!["a b.txt".to_owned(), "src/".to_owned()]);
        let texts: Vec<_> = items.iter().map(|item| item.text.as_str()).collect();
        assert_eq!(texts, ["@a\\ b.txt ", "@src/"]);
        assert_eq!(files(&What::Path, vec!["a b.png".to_owned()])[0].text, "a\\ b.png ");
    }
}
