//! The picture above the audit log: sign-ins and failed attempts of seven days, hour by hour.

use maud::{Markup, html};

use super::audit_words::word;
use crate::pages::admin::{AdminChrome, table};
use crate::statements::hourly_counts::HourlyCounts;
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::instant::{Day, Instant};
use gatepost_server::pages::moment::{at, day_in_words};
use gatepost_server::pages::texts::Template;

/// Of the picture, in its own units: where the line is that sign-ins stand on and failures hang
/// from, how far these reach, its height, and the width of an hour. Further failures stand on the
/// lower edge.
const LINE: i64 = 72;
const FAILED: i64 = 32;
const HEIGHT: i64 = 128;
const WIDTH: usize = 4;

/// `hours` are those that are over of seven days.
pub fn week_picture(around: AdminChrome<'_>, hours: &[HourlyCounts]) -> Markup {
    let mut most = [0; 3];
    for drawn in hours.iter().filter_map(drawn) {
        for (most, count) in most.iter_mut().zip(drawn) {
            *most = count.max(*most);
        }
    }
    let [most_in, most_failed, most_further] = most;
    let most = |name, most: i64| word(around, name).replace("{n}", &most.to_string());
    let midnights = hours.iter().filter(|hour| hour.hour % 24 == 0);
    html! {
        figure .week {
            h2 { (word(around, "week")) }
            svg role="img" aria-label=(word(around, "week")) preserveAspectRatio="none"
                viewBox={ "0 0 " (7 * 24 * WIDTH) " " (HEIGHT) } {
                @for (place, hour) in hours.iter().enumerate() {
                    @let bar = |class, y, height| bar(class, place, y, height);
                    @if let Some([signed_in, failed, further]) = drawn(hour) {
                        @let up = scaled(signed_in, most_in, LINE);
                        @let down = scaled(failed, most_failed, FAILED);
                        @let room = HEIGHT - LINE - FAILED;
                        @let apart = scaled(further, most_further, room);
                        (bar("in", LINE - up, up))
                        (bar("failed", LINE, down))
                        (bar("further", HEIGHT - apart, apart))
                    } @else {
                        (bar("unknown", 0, HEIGHT))
                    }
                }
                line x2="100%" y1=(LINE) y2=(LINE) {}
            }
            ol .days {
                @for hour in midnights {
                    @let day = Day(hour.hour / 24);
                    @let written = timestamp::format_day(day);
                    @let address = around.address_with("audit", &[("day", &written)]);
                    @let name = day_in_words(around.texts, day);
                    li {
                        a href=(address) aria-label=(name) {
                            (written.rsplit('-').next().unwrap_or_default().trim_start_matches('0'))
                        }
                    }
                }
            }
            ul .legend {
                li .in { (most("sign-ins-most", most_in)) }
                li .failed { (most("failures-most", most_failed)) }
                li .further { (most("further-most", most_further)) }
                li .unknown { (word(around, "not-counted")) }
            }
            details {
                summary { (word(around, "table")) }
                p .hint { (around.texts.counted_hourly) }
                (hours_table(around, hours))
            }
        }
    }
}

/// Sign-ins, failed attempts, and all else that was refused in an hour that is known.
fn drawn(hour: &HourlyCounts) -> Option<[i64; 3]> {
    let [signed_in, failed, further @ ..] = hour.counts.as_deref()? else {
        return None;
    };
    Some([*signed_in, *failed, further.iter().sum()])
}

/// So much of the room as `n` is of `most`; what is there can be seen.
fn scaled(n: i64, most: i64, room: i64) -> i64 {
    let most = most.max(1);
    (n.saturating_mul(room).saturating_add(most - 1) / most).min(room)
}

fn bar(class: &str, place: usize, y: i64, height: i64) -> Markup {
    html! {
        @if height > 0 {
            rect class=(class) x=(place * WIDTH) y=(y) width=(WIDTH) height=(height) {}
        }
    }
}

fn hours_table(around: AdminChrome<'_>, hours: &[HourlyCounts]) -> Markup {
    let heads = ["hour", "sign-ins", "failures", "further", "turned-away"];
    let heads = heads.map(|head| word(around, head));
    let begin = |hour: i32| Instant::from_seconds(i64::from(hour) * 3_600);
    let rows = html! {
        @for hour in hours.iter().rev() {
            tr {
                th scope="row" { (at(around.texts, Template("{}"), begin(hour.hour))) }
                @if let Some(counts) = &hour.counts {
                    @for n in counts { td { (n) } }
                } @else {
                    td colspan="4" { (word(around, "not-counted")) }
                }
            }
        }
    };
    table(&heads, &rows)
}
