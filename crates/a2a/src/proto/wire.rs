//! Protobuf on the wire: numbers, tags and lengths.

use super::DecodeError;

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Varint,
    Fixed64,
    Length,
    /// A group, which only old protocols have.
    Start,
    End,
    Fixed32,
}

impl Shape {
    fn of(bits: u64) -> Option<Self> {
        Some(match bits {
            0 => Self::Varint,
            1 => Self::Fixed64,
            2 => Self::Length,
            3 => Self::Start,
            4 => Self::End,
            5 => Self::Fixed32,
            _ => return None,
        })
    }

    fn bits(self) -> u64 {
        match self {
            Self::Varint => 0,
            Self::Fixed64 => 1,
            Self::Length => 2,
            Self::Start => 3,
            Self::End => 4,
            Self::Fixed32 => 5,
        }
    }
}

/// Reads a message field by field.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The number and the shape of the next field; `None` at the end of the message.
    pub(super) fn tag(&mut self) -> Result<Option<(u32, Shape)>, DecodeError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number != 0).ok_or(DecodeError::Malformed)?;
        Ok(Some((number, Shape::of(tag & 7).ok_or(DecodeError::Malformed)?)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = u64::from(self.fixed::<1>()?[0]);
            number |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DecodeError::Malformed)
    }

    /// The bytes of a field that begins with its length.
    pub(super) fn length(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.varint()?;
        let length = usize::try_from(length).map_err(|_| DecodeError::Truncated)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*bytes)
    }

    /// Skips a field of that shape.
    pub(super) fn skip(&mut self, shape: Shape) -> Result<(), DecodeError> {
        let mut groups = 0_usize;
        let mut shape = shape;
        loop {
            match shape {
                Shape::Varint => self.varint().map(drop)?,
                Shape::Fixed64 => self.fixed::<8>().map(drop)?,
                Shape::Length => self.length().map(drop)?,
                Shape::Fixed32 => self.fixed::<4>().map(drop)?,
                Shape::Start => groups += 1,
                Shape::End => groups = groups.checked_sub(1).ok_or(DecodeError::Malformed)?,
            }
            if groups == 0 {
                return Ok(());
            }
            shape = self.tag()?.ok_or(DecodeError::Truncated)?.1;
        }
    }
}

/// Writes a message from its end to its start: a length stands before the bytes that it counts, and is known only after
/// them.
#[derive(Debug, Default)]
pub(super) struct Writer {
    reversed: Vec<u8>,
}

impl Writer {
    pub(super) fn len(&self) -> usize {
        self.reversed.len()
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    pub(super) fn varint(&mut self, number: u64) {
        let mut bytes = [0; 10];
        let mut used = 0;
        let mut rest = number;
        for byte in &mut bytes {
            used += 1;
            *byte = (rest & 0x7f) as u8;
            rest >>= 7;
            if rest == 0 {
                break;
            }
            *byte |= 0x80;
        }
        self.bytes(&bytes[..used]);
    }

    pub(super) fn tag(&mut self, number: u32, shape: Shape) {
        self.varint(u64::from(number) << 3 | shape.bits());
    }

    /// The length of what was written since there were that many bytes, and the tag of the field that it is.
    pub(super) fn close(&mut self, number: u32, before: usize) {
        self.varint((self.len() - before) as u64);
        self.tag(number, Shape::Length);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }
}
