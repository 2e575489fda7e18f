//! Server-sent events, from bytes in whatever pieces they come.

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: String,
}

/// Gathers bytes until they are messages.
#[derive(Debug, Default)]
pub(crate) struct MessageBuffer {
    bytes: Vec<u8>,
    message: Message,
    /// The id of a message without data, which is a place to resume at before there is a message.
    pub(crate) place: Option<String>,
}

impl MessageBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message. As the standard says, one without data is ignored but for its id.
    pub(crate) fn next(&mut self) -> Option<Message> {
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                let message = std::mem::take(&mut self.message);
                if !message.data.is_empty() {
                    return Some(message);
                }
                self.place = message.id.or(self.place.take());
            } else {
                self.take_line(line);
            }
        }
        None
    }

    fn take_line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.message.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.message.event),
            "data" if self.message.data.is_empty() => value.clone_into(&mut self.message.data),
            "data" => {
                self.message.data.push('\n');
                self.message.data.push_str(value);
            }
            // Comments, which keep the connection alive, and fields of a later version.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use lastbyte_testkit::{Corpus, fuzz_inputs};

    use super::*;

    const STREAM: &str = ": hello\n\nid: 7-1\nevent: started\ndata: {\"a\":\ndata: 1}\n\n\
                          : alive\n\nid: 7-2\r\nevent:gap\r\ndata: {}\r\n\r\nid: 7-3\n";

    fn want() -> Vec<Message> {
        let message = |id: &str, event: &str, data: &str| Message {
            id: Some(id.into()),
            event: event.into(),
            data: data.into(),
        };
        vec![message("7-1", "started", "{\"a\":\n1}"), message("7-2", "gap", "{}")]
    }

    #[test]
    fn messages_are_the_same_in_whatever_pieces_they_come() {
        for size in 1..STREAM.len() {
            let mut messages = MessageBuffer::default();
            let mut found = Vec::new();
            for piece in STREAM.as_bytes().chunks(size) {
                messages.push(piece);
                found.extend(std::iter::from_fn(|| messages.next()));
            }
            assert_eq!(found, want(), "in pieces of {size}");
        }
    }

    /// A stream means the same in whatever pieces it comes.
    #[test]
    fn no_stream_does_harm() {
        let words = ["\n\n", "\r\n", "data: ", "id: 7-3", "event:", ":", "data", "\u{feff}"];
        let corpus = Corpus { name: "sse", made: vec![STREAM.as_bytes().to_vec()], words: &words };
        fuzz_inputs(1_000, corpus, |bytes| {
            let read = |size: usize| {
                let (mut messages, mut found) = (MessageBuffer::default(), Vec::new());
                for piece in bytes.chunks(size) {
                    messages.push(piece);
                    found.extend(std::iter::from_fn(|| messages.next()));
                }
                found
            };
            let found = read(bytes.len().max(1));
            assert_eq!(found, read(1 + bytes.len() % 7));
            let is_sound = |one: &Message| !one.event.contains('\n') && !one.data.is_empty();
            assert!(found.iter().all(is_sound), "{found:?}");
            let kind = |one: &Message| (one.id.is_some(), one.event.len(), one.data.len());
            found.iter().map(kind).collect::<Vec<_>>()
        });
    }

    #[test]
    fn a_message_that_is_not_whole_is_not_given() {
        let mut messages = MessageBuffer::default();
        messages.push(b"id: 1-1\nevent: ended\ndata: {}\n");
        assert_eq!(messages.next(), None);
    }
}
