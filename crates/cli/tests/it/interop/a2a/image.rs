//! Images that a message names by a URI.

use serde_json::{Value, json};

use super::cast::{Cast, Deed};
use super::client::{Form, Talk};
use super::host::Host;
use crate::interop::scenario::text::{PIXEL, base64};
use crate::interop::stage::Place;

/// R002-59: in the URI itself and in the session's folder, in both dialects; from elsewhere it is refused by its part.
pub(super) fn an_image_by_its_uri_reaches_the_model(cast: Cast) {
    let place = Place::new(cast.agent(), []);
    let host = Host::start(&place, cast, &[]);
    let file = place.scratch.path("a pixel.png");
    std::fs::write(&file, base64(PIXEL)).unwrap();
    let in_folder = format!("file://{}", file.display().to_string().replace(' ', "%20"));
    let in_itself = format!("data:image/png;base64,{PIXEL}");
    for form in [Form::Specified, Form::V1] {
        let (mut talk, mut seen) = (host.talk(form), 0);
        for uri in [&in_folder, &in_itself] {
            let told = say(&mut talk, &cast.prompt(&place, Deed::Speak), uri).unwrap();
            assert!(told.deeds().last().unwrap().to_lowercase().contains("completed"), "{told}");
            if let Cast::Agent(_) = cast {
                let heard = place.model.conversation().pop().expect("the model was asked");
                assert!(heard.images().len() > seen, "{:#}", heard.body);
                assert!(heard.body.to_string().contains(PIXEL), "{:#}", heard.body);
                seen = heard.images().len();
            }
        }
        for uri in ["https://page.invalid/a.png", "file:///etc/a.png"] {
            let refused = say(&mut talk, "look", uri).map(|told| told.to_string()).unwrap_err();
            assert_eq!(refused["code"], -32602, "{refused:#}");
            assert!(refused["message"].as_str().unwrap().contains("message.parts[1]"), "{refused:#}");
        }
    }
    host.stop();
}

fn say(talk: &mut Talk<'_>, text: &str, uri: &str) -> Result<super::told::Told, Value> {
    let parts = match talk.form() {
        Form::V1 => [json!({"text": text}), json!({"url": uri, "mediaType": "image/png"})],
        Form::Specified | Form::Coder => [
            json!({"kind": "text", "text": text}),
            json!({"kind": "file", "file": {"uri": uri, "mimeType": "image/png"}}),
        ],
    };
    talk.say("ann", &parts)
}
