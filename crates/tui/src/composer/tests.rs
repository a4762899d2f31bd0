//! What is typed, erased and put back.

use super::*;

#[test]
fn graphemes_are_never_cut() {
    let mut composer = Composer::with("a👩‍👩‍👧é");
    composer.erase(Erase::Back);
    composer.erase(Erase::Back);
    assert_eq!(composer.text(), "a");
}

#[test]
fn lines_are_walked_in_the_same_column() {
    let mut composer = Composer::with("one\n日本語 two\nx");
    composer.go(Move::Up);
    assert_eq!(&composer.text()[..composer.cursor()], "one\n日");
    composer.go(Move::LineEnd);
    composer.go(Move::Up);
    assert_eq!(&composer.text()[..composer.cursor()], "one");
    assert!(composer.is_at_edge(Move::Up));
    composer.go(Move::Up);
    assert_eq!(composer.cursor(), 0);
}

#[test]
fn words_are_cut_and_put_back() {
    let mut composer = Composer::with("fix the tests");
    composer.erase(Erase::WordBack);
    assert_eq!(composer.text(), "fix the ");
    composer.go(Move::Start);
    composer.yank();
    assert_eq!(composer.text(), "testsfix the ");
    composer.erase(Erase::ToLineEnd);
    assert_eq!(composer.text(), "tests");
}

#[test]
fn what_is_long_is_pasted_as_one_block() {
    let mut composer = Composer::with("see ");
    let long = "line\n".repeat(20);
    composer.paste(&long);
    assert_eq!(composer.text(), "see [Pasted text #1: 20 lines]");
    assert_eq!(composer.whole(), format!("see {long}"));
    composer.erase(Erase::Back);
    assert_eq!(composer.whole(), "see ");
    composer.paste("short\r\nlines");
    assert_eq!(composer.whole(), "see short\nlines");
}

fn image(data: &str) -> Image {
    Image { media_type: "image/png".to_owned(), data: data.to_owned() }
}

#[test]
fn a_picture_goes_along_while_its_words_stand() {
    let mut composer = Composer::with("what is ");
    composer.picture("cat.png", image("AA=="));
    let prompt = composer.prompt();
    assert_eq!((prompt.text.as_str(), prompt.images), ("what is [Image #1: cat.png]", vec![image("AA==")]));
    composer.erase(Erase::Back);
    assert_eq!(composer.prompt(), Prompt::text("what is "));
}

#[test]
fn a_block_is_moved_over_erased_and_put_back_as_a_whole() {
    let long = "line\n".repeat(40);
    for erase in [Erase::Back, Erase::WordBack, Erase::ToLineStart] {
        let mut composer = Composer::default();
        composer.paste(&long);
        composer.erase(erase);
        assert_eq!(composer.text(), "", "{erase:?}");
    }
    for erase in [Erase::Forward, Erase::WordForward, Erase::ToLineEnd] {
        let mut composer = Composer::default();
        composer.paste(&long);
        composer.go(Move::Left);
        assert_eq!(composer.cursor(), 0, "a block is one step");
        composer.erase(erase);
        assert_eq!(composer.text(), "", "{erase:?}");
    }
    let mut composer = Composer::with("see  now");
    (0..4).for_each(|_| composer.go(Move::Left));
    composer.paste(&long);
    composer.picture("cat.png", image("AA=="));
    let before = composer.prompt();
    composer.go(Move::WordLeft);
    composer.go(Move::WordLeft);
    assert_eq!(composer.cursor(), "see ".len(), "a block is one word");
    composer.erase(Erase::ToLineEnd);
    assert_eq!(composer.prompt(), Prompt::text("see "));
    composer.yank();
    assert_eq!(composer.prompt(), before);
    composer.go(Move::Start);
    composer.go(Move::WordRight);
    composer.go(Move::WordRight);
    composer.insert("!");
    assert_eq!(composer.whole(), format!("see {long}![Image #2: cat.png] now"));
}

#[test]
fn what_looks_like_a_block_is_text() {
    let (first, second) = (format!("{}[Pasted text #2: 5 lines]", "a\n".repeat(9)), "b\n".repeat(5));
    let mut composer = Composer::with("[Pasted text #1: 10 lines] ");
    composer.paste(&first);
    composer.paste(&second);
    assert_eq!(composer.whole(), format!("[Pasted text #1: 10 lines] {first}{second}"));
}

#[test]
fn an_editor_may_move_a_picture_and_take_one_out() {
    let mut composer = Composer::with("see ");
    composer.paste(&"x\n".repeat(9));
    composer.picture("a.png", image("A"));
    composer.picture("b]\n.png", image("B"));
    assert!(composer.whole().ends_with("[Image #2: a.png][Image #3: b__.png]"), "{}", composer.whole());
    composer.rewrite("[Image #3: b__.png] and [Image #2: a.png], [Image #2: a.png]");
    assert_eq!(composer.prompt().images, [image("B"), image("A")]);
    composer.rewrite("only [Image #2: a.png]");
    assert_eq!(composer.prompt().images, [image("A")]);
    composer.erase(Erase::Back);
    assert_eq!(composer.prompt(), Prompt::text("only "));
}

#[test]
fn a_prompt_comes_back_with_its_pictures() {
    let text = "[Image #x] in [Image #2: a.png]";
    let composer = Composer::of(&Prompt { images: vec![image("A"), image("B")], ..Prompt::text(text) });
    assert_eq!(composer.text(), "[Image #x] in [Image #2: a.png] [Image #3: image/png]");
    assert_eq!(composer.prompt().images, [image("A"), image("B")]);
    let mut again = Composer::of(&composer.prompt());
    assert_eq!(again, composer);
    again.erase(Erase::WordBack);
    again.erase(Erase::WordBack);
    assert_eq!(again.prompt(), Prompt::text("[Image #x] in "));
    assert_eq!(Composer::of(&Prompt::text("[Image #1: no]")).prompt().images, []);
}
