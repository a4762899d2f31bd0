//! The table of languages.

#[derive(Debug)]
pub(super) struct Language {
    /// Names after the fence, with spaces between them.
    names: &'static str,
    pub(super) shape: Shape,
    /// Keywords, with spaces between them.
    pub(super) words: &'static str,
    pub(super) constants: &'static [&'static str],
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// The longer ones first.
    pub(super) quotes: &'static [&'static str],
    /// Quotes of one character that may span lines.
    pub(super) long_quotes: &'static [&'static str],
    /// A single quote may begin a lifetime.
    pub(super) lifetimes: bool,
    pub(super) any_case: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Code,
    /// Names and values.
    Data,
    Diff,
}

pub(super) fn find(name: &str) -> Option<&'static Language> {
    // Also `rust,ignore`, `js {1-3}` and `{.python}`.
    let name = name.trim_start_matches(['{', '.']).split([',', ' ', '{', '}', ':']).next()?.to_ascii_lowercase();
    LANGUAGES.iter().find(|language| language.names.split(' ').any(|known| known == name))
}

const PLAIN: Language = Language {
    names: "",
    shape: Shape::Code,
    words: "",
    constants: &["true", "false", "null"],
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: &["\"", "'"],
    long_quotes: &[],
    lifetimes: false,
    any_case: false,
};

const LANGUAGES: &[Language] = &[
    Language {
        names: "rust rs",
        words: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match \
                mod move mut pub ref return self Self static struct super trait type unsafe use where while \
                yield",
        constants: &["true", "false", "None", "Some", "Ok", "Err"],
        long_quotes: &["\""],
        lifetimes: true,
        ..PLAIN
    },
    Language {
        names: "python py python3 pyi starlark",
        words: "and as assert async await break case class continue def del elif else except finally for from \
                global if import in is lambda match nonlocal not or pass raise return try while with yield",
        constants: &["True", "False", "None", "self", "cls"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &["\"\"\"", "'''", "\"", "'"],
        ..PLAIN
    },
    Language {
        names: "javascript js jsx mjs cjs typescript ts tsx vue svelte",
        words: "abstract as async await break case catch class const continue debugger declare default delete do \
                else enum export extends finally for from function get if implements import in instanceof \
                interface keyof let new of private protected public readonly return satisfies set static super \
                switch this throw try type typeof var void while with yield",
        constants: &["true", "false", "null", "undefined", "NaN"],
        quotes: &["\"", "'", "`"],
        long_quotes: &["`"],
        ..PLAIN
    },
    Language {
        names: "go golang",
        words: "break case chan const continue default defer else fallthrough for func go goto if import \
                interface map package range return select struct switch type var",
        constants: &["true", "false", "nil", "iota"],
        quotes: &["\"", "'", "`"],
        long_quotes: &["`"],
        ..PLAIN
    },
    Language {
        names: "c h cpp c++ cc cxx hpp objc cuda glsl arduino",
        words: "alignas auto bool break case catch char class const constexpr continue default delete do double \
                else enum explicit extern float for friend goto if inline int long namespace new noexcept \
                operator override private protected public register return short signed sizeof static struct \
                switch template this throw try typedef typename union unsigned using virtual void volatile while \
                include define ifdef ifndef endif pragma",
        constants: &["true", "false", "NULL", "nullptr"],
        ..PLAIN
    },
    Language {
        names: "java kotlin kt kts csharp cs c# scala groovy gradle dart swift php",
        words: "abstract as async await break case catch class companion const continue data def default do echo \
                else enum extends extension final finally for foreach fun func function guard if implements \
                import in init inline int interface internal is let namespace new object open operator override \
                package private protected protocol public record return sealed static string struct suspend \
                super switch this throw throws trait try using val var void when where while with yield",
        constants: &["true", "false", "null", "nil", "self"],
        quotes: &["\"\"\"", "\"", "'"],
        ..PLAIN
    },
    Language {
        names: "sh bash zsh shell console fish shellscript dockerfile docker makefile make",
        words: "if then else elif fi for in do done while until case esac function return local export readonly \
                set unset source echo cd exit exec trap FROM RUN COPY ADD ENV ARG WORKDIR CMD ENTRYPOINT EXPOSE \
                USER VOLUME",
        constants: &["true", "false"],
        line_comments: &["#"],
        block_comment: None,
        long_quotes: &["\"", "'"],
        ..PLAIN
    },
    Language {
        names: "ruby rb elixir ex exs crystal",
        words: "alias and begin break case class cond def defmodule defp do else elsif end ensure fn for if \
                import in module next not or redo require rescue retry return self super then undef unless until \
                use when while with yield",
        constants: &["true", "false", "nil"],
        line_comments: &["#"],
        block_comment: None,
        ..PLAIN
    },
    Language {
        names: "lua haskell hs elm",
        words: "and break case class data deriving do else elseif end for function goto if import in instance \
                let local module newtype not of or repeat return then type until where while",
        constants: &["true", "false", "nil", "True", "False", "Nothing", "Just"],
        line_comments: &["--"],
        block_comment: None,
        ..PLAIN
    },
    Language {
        names: "sql postgres postgresql mysql sqlite plsql",
        words: "add alter and as asc begin between by case check commit create default delete desc distinct drop \
                else end exists foreign from group having if in index inner insert into is join key left like \
                limit not null on or order outer primary references returning right rollback select set table \
                then union unique update values view when where with",
        line_comments: &["--"],
        any_case: true,
        ..PLAIN
    },
    Language { names: "json jsonc json5 jsonl ndjson", shape: Shape::Data, ..PLAIN },
    Language {
        names: "toml yaml yml ini conf properties env hcl terraform tf nix",
        shape: Shape::Data,
        constants: &["true", "false", "null", "yes", "no", "on", "off"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &["\"\"\"", "'''", "\"", "'"],
        ..PLAIN
    },
    Language {
        names: "css scss sass less",
        shape: Shape::Data,
        words: "important media import include mixin keyframes root",
        ..PLAIN
    },
    Language {
        names: "html xml svg xhtml plist",
        shape: Shape::Data,
        line_comments: &[],
        block_comment: Some(("<!--", "-->")),
        ..PLAIN
    },
    Language { names: "diff patch", shape: Shape::Diff, ..PLAIN },
];
