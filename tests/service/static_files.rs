//! What lies under `/static/`: embedded files, and the operator's brand.

use crate::support::claims::Says;
use crate::support::flow::authorize_path;
use crate::support::gatepost::{Gatepost, RP1, document};

#[test]
fn pages_carry_the_operators_brand_and_its_files_are_served() {
    let logo = std::env::temp_dir().join(format!("gatepost-logo-{}.svg", std::process::id()));
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
    std::fs::write(&logo, svg).unwrap();
    let gatepost = Gatepost::start_with(
        &document(),
        &[
            ("GATEPOST_BRAND_NAME", "Müller & Söhne"),
            ("GATEPOST_BRAND_LOGO", &logo.display().to_string()),
            ("GATEPOST_BRAND_COLOR", "#aa3300"),
            ("GATEPOST_BRAND_PRIVACY_URL", "https://example.com/privacy"),
        ],
    );
    let page = gatepost.browser().visit(&authorize_path("conf1", RP1, &[]));
    page.assert_says("src=\"/static/brand-logo\" alt=\"Müller &amp; Söhne\"");
    assert!(page.text().contains("href=\"https://example.com/privacy\""));
    let served = gatepost.get("/static/brand-logo");
    served.assert_status(200);
    served.assert_header("content-type", "image/svg+xml");
    assert_eq!(served.text(), svg);
    served
        .header("content-security-policy")
        .unwrap()
        .assert_says("sandbox");
    assert!(gatepost.get("/static/brand.css").text().contains("#aa3300"));
    std::fs::remove_file(&logo).unwrap();
    gatepost
        .get("/static/brand-logo")
        .assert_status_for("no fault of ours", 404);
}

#[test]
fn what_another_build_or_another_colour_has_is_not_kept_under_an_address_of_today() {
    let red = Gatepost::start_with(&document(), &[("GATEPOST_BRAND_COLOR", "#aa3300")]);
    let green = Gatepost::start_with(&document(), &[("GATEPOST_BRAND_COLOR", "#00aa33")]);
    let page = green.get("/nowhere").text();
    for name in ["brand.css", "app.css"] {
        let address = page
            .split('"')
            .find(|text| text.contains(&format!("/static/{name}?v=")))
            .unwrap_or_else(|| panic!("{name}: {page}"));
        for (gatepost, caching) in [(&green, "public, max-age=86400"), (&red, "no-store")] {
            let answer = gatepost.get(address);
            assert_eq!(answer.status, 200, "{address}");
            assert_eq!(answer.header("cache-control"), Some(caching), "{address}");
        }
    }
}

#[test]
fn a_logo_that_cannot_be_read_is_told_at_the_start_and_pages_show_the_name() {
    let settings = [
        ("GATEPOST_BRAND_NAME", "Müller & Söhne"),
        ("GATEPOST_BRAND_LOGO", "/nowhere/logo.png"),
    ];
    let gatepost = Gatepost::start_with(&document(), &settings);
    let told = "GATEPOST_BRAND_LOGO: /nowhere/logo.png cannot be read (No such file or directory)";
    gatepost.await_log("the logo", |log| log.contains(told));
    let page = gatepost.browser().visit(&authorize_path("conf1", RP1, &[]));
    page.assert_says_not("brand-logo");
    page.assert_says("Müller &amp; Söhne");
    assert_eq!(gatepost.get("/static/brand-logo").status, 404);
}

#[test]
fn a_logo_that_is_no_picture_is_told_and_not_served() {
    let logo = std::env::temp_dir().join(format!("gatepost-text-{}.png", std::process::id()));
    std::fs::write(&logo, "no picture").unwrap();
    let settings = [("GATEPOST_BRAND_LOGO", logo.to_str().unwrap())];
    let gatepost = Gatepost::start_with(&document(), &settings);
    gatepost.await_log("the logo", |log| {
        log.contains("cannot be read (it is no picture)")
    });
    let page = gatepost.browser().visit(&authorize_path("conf1", RP1, &[]));
    assert!(!page.text().contains("brand-logo"), "{}", page.text());
    assert_eq!(gatepost.get("/static/brand-logo").status, 404);
    std::fs::remove_file(&logo).unwrap();
}

#[test]
fn only_what_is_in_the_table_is_served() {
    let gatepost = Gatepost::shared();
    for name in ["app.css", "icon.svg", "form-post.js", "check-session.js"] {
        let answer = gatepost.get(&format!("/static/{name}"));
        assert_eq!(answer.status, 200, "{name}");
        answer.assert_header_for(name, "cache-control", "public, max-age=86400");
        gatepost
            .send("HEAD", &format!("/static/{name}"), &[], b"")
            .assert_status_for(name, 200);
    }
    for path in [
        "/static/",
        "/static/brand.css",
        "/static/brand-logo",
        "/static/../Cargo.toml",
        "/static/../../etc/passwd",
        "/static/%2e%2e/Cargo.toml",
        "/static/..%5cCargo.toml",
        "/static//etc/passwd",
        "/static/app.css%00",
        "/static/app.css/",
        "/static/APP.CSS",
    ] {
        assert_eq!(gatepost.get(path).status, 404, "{path}");
    }
    assert_eq!(gatepost.post("/static/app.css", &[], &[]).status, 405);
}
