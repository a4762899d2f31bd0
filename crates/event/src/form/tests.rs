use proptest::prelude::*;

use super::*;

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("not an object: {value}") };
    object
}

fn form(properties: &Value, required: &[&str]) -> Question {
    let params = json!({
        "message": "Please fill this in",
        "requestedSchema": { "type": "object", "properties": properties, "required": required },
    });
    Elicitation::of("files", &object(params)).question("q".into(), None)
}

fn submit(question: &Question, answers: Value) -> Result<ElicitationAnswer, String> {
    let mut decide = Decide::new(&question.question_id, option::PROCEED_ONCE);
    decide.answers = Some(object(answers).into_iter().collect());
    ElicitationAnswer::of(question, &decide)
}

fn accepted(content: Value) -> Result<ElicitationAnswer, String> {
    Ok(ElicitationAnswer::Accept(object(content)))
}

fn asked(question: &Question) -> &[AskedQuestion] {
    let Details::Input { questions } = &question.details else { panic!("{question:#?}") };
    questions
}

/// One field of each kind that MCP knows.
fn every_kind() -> Question {
    let properties = json!({
        "name": { "type": "string", "title": "Name", "description": "Your name", "minLength": 2, "maxLength": 20 },
        "agree": { "type": "boolean", "title": "Terms", "default": false },
        "mail": { "type": "string", "format": "email" },
        "day": { "type": "string", "format": "date" },
        "count": { "type": "integer", "minimum": 1, "maximum": 100, "default": 42 },
        "share": { "type": "number", "minimum": 0 },
        "friend": { "type": "string", "enum": ["Monica", "Joey"] },
        "hero": { "type": "string", "oneOf": [{ "const": "h1", "title": "Superman" }, { "const": "h2", "title": "Lantern" }] },
        "pet": { "type": "string", "enum": ["p1", "p2"], "enumNames": ["Cats", "Dogs"] },
        "fish": { "type": "array", "minItems": 1, "maxItems": 2,
            "items": { "anyOf": [{ "const": "f1", "title": "Tuna" }, { "const": "f2", "title": "Trout" }] } },
    });
    form(&properties, &["name"])
}

#[test]
fn a_form_is_one_question_for_each_field_and_names_its_server() {
    let question = every_kind();
    assert_eq!(question.title, "files asks: Please fill this in");
    let texts: Vec<&str> = asked(&question).iter().map(|one| one.question.as_str()).collect();
    let expected = [
        "Your name (text of 2 to 20 characters)",
        "Terms (default: no)",
        "mail (an email address, optional)",
        "day (a date such as 2026-01-31, optional)",
        "count (a whole number 1 to 100, default: 42)",
        "share (a number at least 0, optional)",
        "friend (optional)",
        "hero (optional)",
        "pet (optional)",
        "fish (choose 1 to 2, optional)",
    ];
    assert_eq!(texts, expected);
    let labels: Vec<_> = asked(&question).iter().map(|one| one.labels.join(" ")).collect();
    assert_eq!(labels[1], "yes no");
    assert_eq!(&labels[6..], ["Monica Joey", "Superman Lantern", "Cats Dogs", "Tuna Trout"]);
    assert!(asked(&question)[9].multi_select);
    let ids: Vec<_> = question.options.iter().map(|choice| choice.id.as_str()).collect();
    assert_eq!(ids, ["proceed_once", "cancel", "decline"]);
}

#[test]
fn answers_become_typed_content_by_question_or_by_name() {
    let question = every_kind();
    let given = json!({
        "Your name (text of 2 to 20 characters)": "Ada", "agree": "yes", "mail": "ada@example.org", "day": "2026-02-28",
        "count": "7", "share": "0.5", "friend": "Joey", "hero": "Lantern", "pet": "p1", "fish": ["Trout", "f1"],
    });
    let content = json!({
        "name": "Ada", "agree": true, "mail": "ada@example.org", "day": "2026-02-28",
        "count": 7, "share": 0.5, "friend": "Joey", "hero": "h2", "pet": "p1", "fish": ["f2", "f1"],
    });
    assert_eq!(submit(&question, given), accepted(content));
    let only_required = json!({ "name": "Ada", "mail": "", "fish": [], "count": null });
    assert_eq!(submit(&question, only_required), accepted(json!({ "name": "Ada", "agree": false })));
}

#[test]
fn a_value_that_does_not_fit_is_refused_with_its_field_and_what_it_takes() {
    let question = every_kind();
    let cases = [
        (json!({}), "no answer to \"Your name"),
        (json!({ "name": null }), "no answer to \"Your name"),
        (json!({ "name": "  " }), "no answer to \"Your name"),
        (json!({ "name": "A" }), "\"A\" is not valid for \"Your name"),
        (json!({ "name": 5 }), "use text of 2 to 20 characters"),
        (json!({ "name": "Ada", "agree": "perhaps" }), "use yes or no"),
        (json!({ "name": "Ada", "agree": 1 }), "use yes or no"),
        (json!({ "name": "Ada", "mail": "ada" }), "an email address"),
        (json!({ "name": "Ada", "day": "2026-02-30" }), "a date such as"),
        (json!({ "name": "Ada", "count": "many" }), "a whole number 1 to 100"),
        (json!({ "name": "Ada", "count": 1.5 }), "a whole number 1 to 100"),
        (json!({ "name": "Ada", "count": 101 }), "a whole number 1 to 100"),
        (json!({ "name": "Ada", "share": -1 }), "a number at least 0"),
        (json!({ "name": "Ada", "share": "NaN" }), "a number at least 0"),
        (json!({ "name": "Ada", "friend": "Ross" }), "one of Monica, Joey"),
        (json!({ "name": "Ada", "fish": ["Tuna", "Shark"] }), "1 to 2 of Tuna, Trout"),
        (json!({ "name": "Ada", "colour": "red" }), "\"colour\" is not a field of this form"),
    ];
    for (given, expected) in cases {
        let refused = submit(&question, given.clone()).unwrap_err();
        assert!(refused.contains(expected), "{given}: {refused}");
    }
}

#[test]
fn only_an_offered_option_accepts_and_the_two_refusals_differ() {
    let question = every_kind();
    let by = |option: &str| {
        let decide =
            Decide { answers: Some([("name".to_owned(), "Ada".into())].into()), ..Decide::new(&"q".into(), option) };
        ElicitationAnswer::of(&question, &decide)
    };
    assert_eq!(by(option::DECLINE), Ok(ElicitationAnswer::Decline));
    assert_eq!(by(option::CANCEL), Ok(ElicitationAnswer::Cancel));
    assert!(matches!(by(option::PROCEED_ONCE), Ok(ElicitationAnswer::Accept(_))));
    for other in ["accept", "yes", "answer_1", option::PROCEED_ALWAYS, ""] {
        by(other).unwrap_err();
    }
    assert_eq!(ElicitationAnswer::Decline.result(), json!({ "action": "decline" }));
}

#[test]
fn the_only_field_is_answered_by_its_option_or_in_words() {
    let question = form(&json!({ "sure": { "type": "boolean" } }), &["sure"]);
    let ids: Vec<_> = question.options.iter().map(|choice| choice.id.as_str()).collect();
    assert_eq!(ids, ["answer_1", "answer_2", "cancel", "decline"]);
    let no = ElicitationAnswer::of(&question, &Decide::new(&"q".into(), "answer_2"));
    assert_eq!(no, accepted(json!({ "sure": false })));
    // An answer in `answers` wins over the option it came with.
    let both =
        Decide { answers: Some([("sure".to_owned(), true.into())].into()), ..Decide::new(&"q".into(), "answer_2") };
    assert_eq!(ElicitationAnswer::of(&question, &both), accepted(json!({ "sure": true })));
    let question = form(&json!({ "count": { "type": "integer" } }), &["count"]);
    let words = Decide::new(&"q".into(), option::PROCEED_ONCE).with_feedback("12");
    assert_eq!(ElicitationAnswer::of(&question, &words), accepted(json!({ "count": 12 })));
}

#[test]
fn an_address_is_shown_and_a_form_without_fields_is_confirmed() {
    let url = json!({ "mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "e1" });
    let question = Elicitation::of("files", &object(url)).question("q".into(), Some("t".into()));
    assert_eq!(
        question.details,
        Details::Text { text: "Sign in\nhttps://example.com/in".into(), arguments: Map::new() }
    );
    assert_eq!(question.tool_id, Some("t".into()));
    let yes = Decide::new(&"q".into(), option::PROCEED_ONCE);
    assert_eq!(ElicitationAnswer::of(&question, &yes), accepted(json!({})));
    let bare = Elicitation::of("files", &object(json!({ "message": "Go on?" }))).question("q".into(), None);
    assert_eq!(ElicitationAnswer::of(&bare, &yes), accepted(json!({})));
}

#[test]
fn fields_with_the_same_words_are_told_apart() {
    let same = json!({ "type": "string", "description": "Name" });
    let question = form(&json!({ "a": same, "b": same, "Name [b]": same }), &["a", "b"]);
    let texts: std::collections::BTreeSet<_> = asked(&question).iter().map(|one| &one.question).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    // Each is described by the other's name.
    let crossed = json!({ "a": { "type": "string", "title": "b" }, "b": { "type": "string", "title": "a" } });
    let question = form(&crossed, &["a", "b"]);
    assert!(submit(&question, json!({ "a": "x" })).unwrap_err().contains("no answer to \"b\""));
    assert_eq!(submit(&question, json!({ "a": "x", "b": "y" })), accepted(json!({ "a": "y", "b": "x" })));
}

#[test]
fn many_values_are_read_in_linear_time() {
    let words: Vec<String> = (0..150_000).map(|word| format!("w{word:06}")).collect();
    let free = form(&json!({ "tags": { "type": "array", "items": { "type": "string" }, "default": words } }), &[]);
    assert_eq!(submit(&free, json!({})), accepted(json!({ "tags": words })));
    assert_eq!(submit(&free, json!({ "tags": words })), accepted(json!({ "tags": words })));

    let offered: Vec<&String> = words.iter().take(MAX_LABELS).collect();
    let closed = form(&json!({ "tags": { "type": "array", "items": { "enum": words } } }), &[]);
    let often: Vec<&String> = offered.iter().copied().cycle().take(500_000).collect();
    assert_eq!(submit(&closed, json!({ "tags": often })), accepted(json!({ "tags": offered })));
}

/// A property of a schema, and an answer with the value it must become.
fn field() -> impl Strategy<Value = (Value, Value, Value)> {
    let names = || prop::collection::btree_set("[a-z]{1,6}", 1..5);
    prop_oneof![
        "[a-zA-Z0-9]{1,12}".prop_map(|text| (json!({ "type": "string" }), json!(text), json!(text))),
        any::<i64>().prop_map(|n| (json!({ "type": "integer" }), json!(n.to_string()), json!(n))),
        (-1000_i32..1000).prop_map(|n| (
            json!({ "type": "number" }),
            json!(f64::from(n) / 8.0),
            json!(f64::from(n) / 8.0)
        )),
        any::<bool>().prop_map(|b| (json!({ "type": "boolean" }), json!(if b { "yes" } else { "no" }), json!(b))),
        // All have the same title, and still each label names one value.
        (names(), any::<prop::sample::Index>()).prop_map(|(names, at)| {
            let names: Vec<String> = names.into_iter().collect();
            let one_of: Vec<Value> = names.iter().map(|name| json!({ "const": name, "title": "Same" })).collect();
            let at = at.index(names.len());
            (json!({ "type": "string", "oneOf": one_of }), json!({ "label": at }), json!(names[at]))
        }),
        names().prop_map(|names| {
            let names: Vec<String> = names.into_iter().collect();
            (json!({ "type": "array", "items": { "type": "string", "enum": names } }), json!(names), json!(names))
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_answered_arrives_typed(fields in prop::collection::vec((field(), any::<bool>()), 2..8)) {
        let names: Vec<String> = (0..fields.len()).map(|at| format!("f{at}")).collect();
        let properties: Map<String, Value> =
            names.iter().cloned().zip(fields.iter().map(|((schema, ..), _)| schema.clone())).collect();
        let required: Vec<&str> = names.iter().zip(&fields).filter(|(_, (_, required))| *required).map(|(name, _)| name.as_str()).collect();
        let question = form(&properties.into(), &required);
        let (mut answers, mut content) = (Map::new(), Map::new());
        for ((name, ((_, given, value), _)), asked) in names.iter().zip(&fields).zip(asked(&question)) {
            let given = match given.get("label").and_then(Value::as_u64) {
                Some(label) => json!(asked.labels[usize::try_from(label).unwrap()]),
                None => given.clone(),
            };
            answers.insert(asked.question.clone(), given);
            content.insert(name.clone(), value.clone());
        }
        prop_assert_eq!(submit(&question, answers.clone().into()), accepted(content.into()));
        // Without its required fields nothing is accepted; without the others it is.
        for (asked, (_, required)) in asked(&question).iter().zip(&fields) {
            let mut fewer = answers.clone();
            fewer.shift_remove(&asked.question);
            prop_assert_eq!(submit(&question, fewer.into()).is_err(), *required);
        }
    }

    #[test]
    fn no_schema_and_no_answer_breaks_it(schema in anything(), key in "[a-c]", given in anything(), option in "(proceed_once|answer_1|cancel|x)") {
        let params = json!({ "message": "m", "requestedSchema": { "properties": { "a": schema, "b": schema, "c": {} }, "required": schema } });
        let question = Elicitation::of("s", &object(params)).question("q".into(), None);
        let mut decide = Decide::new(&"q".into(), option.as_str());
        decide.answers = Some([(key, given)].into());
        let accepted = matches!(ElicitationAnswer::of(&question, &decide), Ok(ElicitationAnswer::Accept(_)));
        prop_assert!(!accepted || question.choice(&decide.option_id).is_some_and(|choice| choice.kind.allows()));
        let wire = serde_json::to_string(&question).unwrap();
        prop_assert_eq!(serde_json::from_str::<Question>(&wire).unwrap(), question);
    }
}

/// Schemas and answers that nobody should send.
fn anything() -> impl Strategy<Value = Value> {
    let key = "(type|enum|oneOf|anyOf|const|title|items|default|minimum|maxLength|format|enumNames|required)";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6).prop_map(Value::from),
        "(string|array|integer|number|boolean|object|date|email|a|b| |\\PC{0,4})".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}
