//! What a dump says in two places, or in a way that seldom occurs, opens nothing.

use super::*;

#[test]
fn an_address_is_verified_where_its_own_column_says_so() {
    let claim =
        |name: &str, value: &str| json!({"UserId": "u", "ClaimType": name, "ClaimValue": value});
    let (document, lines) = read(json!({
        "AspNetUsers": [{"Id": "u", "UserName": "ada", "Email": "boss@corp.example", "EmailConfirmed": false, "PhoneNumber": "1", "PhoneNumberConfirmed": false}],
        "AspNetUserClaims": [claim("email", "old@corp.example"), claim("email_verified", "true"), claim("phone_number_verified", "true")],
    }));
    let claims = &document["users"][0]["claims"];
    assert_eq!(claims["email"], "boss@corp.example");
    assert_eq!(claims["email_verified"], false);
    assert_eq!(claims["phone_number_verified"], false);
    let lines = lines.join("\n");
    for claim in ["email", "email_verified", "phone_number_verified"] {
        let line = format!("user ada: its claim {claim} of AspNetUserClaims is left out");
        assert!(lines.contains(&line), "{lines}");
    }
}
