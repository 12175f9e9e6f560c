//! Forms and queries. What is read can be written and is read again as the same; it has no NUL, and
//! what is bounded is within its bound.
#![no_main]

use gatepost::protocol::words::parameters::Parameters;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(parameters) = Parameters::parse(data) else {
        return;
    };
    let pairs: Vec<(&str, &str)> = parameters.iter().collect();
    let mut writer = form_urlencoded::Serializer::new(String::new());
    let written = writer.extend_pairs(&pairs).finish();
    assert_eq!(
        Parameters::parse(written.as_bytes()),
        Ok(parameters.clone())
    );
    assert_eq!(Parameters::from_pairs(pairs.iter().copied()), parameters);
    for (name, value) in &pairs {
        assert!(!name.contains('\0') && !value.contains('\0'));
        let times = pairs.iter().filter(|(other, _)| other == name).count();
        assert_eq!(parameters.single(name).is_err(), times > 1);
        if let Ok(Some(value)) = parameters.bounded(name, 5) {
            assert!(!value.is_empty() && value.chars().count() <= 5);
        }
    }
});
