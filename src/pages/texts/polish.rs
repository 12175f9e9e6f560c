//! Polish, in forms that address nobody too closely and fit every gender.

use crate::pages::language::Language;
use crate::pages::texts::{ScopeText, Template, Texts};

/// The Polish table.
pub const POLISH: Texts = Texts {
    language: Language::Polish,

    error_in_title: Template("Błąd: {}"),
    about_this_service: "O tej usłudze",
    privacy_policy: "Polityka prywatności",
    terms_of_service: "Warunki korzystania z usługi",
    website: "Strona internetowa",
    about_client: Template("Informacje o aplikacji {}"),
    opens_in_new_tab: "(otwiera się w nowej karcie)",
    there_is_a_problem: "Wystąpił problem",
    cancel: "Anuluj",
    minutes,

    sign_in_title: "Logowanie",
    to_continue_to: Template("aby przejść do aplikacji {}"),
    with_account_of_tenant: Template("przy użyciu konta {}"),
    username: "Nazwa użytkownika",
    password: "Hasło",
    sign_in: "Zaloguj się",
    wrong_credentials: "Nazwa użytkownika lub hasło są nieprawidłowe. Proszę sprawdzić obie informacje i spróbować ponownie.",
    too_many_attempts: Template("Liczba nieudanych prób była zbyt duża. Proszę odczekać {} i spróbować ponownie."),
    page_expired: "Ta strona nie była już aktualna, dlatego logowanie nie zostało wykonane. Proszę spróbować ponownie.",
    username_missing: "Proszę wpisać nazwę użytkownika.",
    password_missing: "Proszę wpisać hasło.",
    choose_account_title: "Wybór konta",
    signed_in_here_as: Template("Zalogowano tutaj jako {}."),
    continue_as: Template("Kontynuuj jako {}"),
    use_another_account: "Użyj innego konta",

    consent_title: "Zezwolić na dostęp?",
    client_asks_for_access: Template("{} prosi o dostęp"),
    signed_in_as: Template("Zalogowano jako {}."),
    not_you: "To inne konto?",
    scopes_legend: "Żądany dostęp",
    scope_required: "Zawsze uwzględniane",
    scope_required_hint: "Bez tego aplikacja nie może działać.",
    scope_emphasized: "Ważne",
    claims_heading: "Aplikacja prosi także o te dane użytkownika",
    remember: "Zapamiętaj moją decyzję",
    remember_hint: "Pytanie pojawi się ponownie dopiero wtedy, gdy aplikacja poprosi o więcej.",
    consent_hint: Template(
        "Na dostęp należy zezwolić tylko wtedy, gdy {} jest aplikacją godną zaufania. Hasło nie jest udostępniane.",
    ),
    allow: "Zezwól",
    deny: "Nie zezwalaj",
    session_changed: "Konto zalogowane w tej przeglądarce zmieniło się, gdy ta strona była otwarta, dlatego nic nie zostało \
                      wykonane. Proszę sprawdzić ponownie.",
    standard_scopes: [
        ScopeText {
            scope: "openid",
            name: "Rozpoznawanie użytkownika",
            description: "Identyfikator, który oznacza to konto.",
        },
        ScopeText {
            scope: "profile",
            name: "Wgląd w profil",
            description: "Imię i nazwisko oraz, jeśli zostały podane, dane takie jak zdjęcie, data urodzenia i język.",
        },
        ScopeText {
            scope: "email",
            name: "Wgląd w adres e-mail",
            description: "Adres oraz informacja, czy został zweryfikowany.",
        },
        ScopeText { scope: "address", name: "Wgląd w adres pocztowy", description: "Adres zapisany na koncie." },
        ScopeText {
            scope: "phone",
            name: "Wgląd w numer telefonu",
            description: "Numer oraz informacja, czy został zweryfikowany.",
        },
        ScopeText {
            scope: "offline_access",
            name: "Dostęp także pod nieobecność użytkownika",
            description: "Aplikacja może korzystać z udzielonych tu zezwoleń także wtedy, gdy nie jest używana, aż do ich \
                          wycofania.",
        },
    ],
    standard_claims: [
        ("name", "Imię i nazwisko"),
        ("given_name", "Imię"),
        ("family_name", "Nazwisko"),
        ("middle_name", "Drugie imię"),
        ("nickname", "Pseudonim"),
        ("preferred_username", "Preferowana nazwa użytkownika"),
        ("profile", "Strona profilu"),
        ("picture", "Zdjęcie"),
        ("website", "Strona internetowa"),
        ("email", "Adres e-mail"),
        ("email_verified", "Czy adres e-mail został zweryfikowany"),
        ("gender", "Płeć"),
        ("birthdate", "Data urodzenia"),
        ("zoneinfo", "Strefa czasowa"),
        ("locale", "Język i region"),
        ("phone_number", "Numer telefonu"),
        ("phone_number_verified", "Czy numer telefonu został zweryfikowany"),
        ("address", "Adres pocztowy"),
        ("updated_at", "Kiedy dane zostały ostatnio zmienione"),
    ],

    sign_out_title: "Wylogować się?",
    client_asks_to_sign_out: Template("{} prosi o wylogowanie."),
    sign_out_hint: "Wylogowanie zakończy sesję tutaj oraz w aplikacjach, które z niej korzystają w tej przeglądarce.",
    sign_out: "Wyloguj się",
    stay_signed_in: "Nie wylogowuj",
    signed_out_title: "Wylogowano",
    signed_out_hint: "Jeśli z tego urządzenia korzystają inne osoby, proszę zamknąć także wszystkie okna przeglądarki.",
    back_to_client: Template("Wróć do aplikacji {}"),

    bad_request: "Nie można zrealizować tego żądania",
    bad_request_advice: "Proszę wrócić do aplikacji i zacząć od nowa. Jeśli ta strona pojawi się ponownie, twórcy aplikacji \
                         muszą poprawić link lub formularz, który tutaj prowadzi.",
    forbidden: "To działanie było niedozwolone",
    forbidden_advice: "Formularz nie pochodził z naszej strony albo strona była nieaktualna. Proszę wrócić do aplikacji i zacząć \
                       od nowa.",
    not_found: "Nie ma tu żadnej strony",
    not_found_advice: "Proszę sprawdzić adres albo zacząć od aplikacji, która ma zostać użyta.",
    method_not_allowed: "Tej strony nie można użyć w ten sposób",
    method_not_allowed_advice: "Proszę zacząć od nowa w aplikacji, która ma zostać użyta.",
    too_large: "Wysłano zbyt dużo danych naraz",
    too_large_advice: "Proszę wrócić i zacząć od nowa. Jeśli ta strona pojawi się ponownie, aplikacja wysyła więcej, niż \
                       przyjmujemy.",
    too_many_requests: "Zbyt wiele prób",
    too_many_requests_advice: Template("Aby chronić konto, proszę odczekać {} i spróbować ponownie."),
    internal: "Wystąpił błąd po naszej stronie",
    internal_advice: "To nie wina użytkownika. Proszę spróbować ponownie za chwilę.",
    unavailable: "W tej chwili nie możemy odpowiedzieć",
    unavailable_advice: "Powinno to wkrótce minąć. Proszę chwilę odczekać i spróbować ponownie.",
    support_hint: "Prosząc o pomoc, należy podać te informacje:",
    reference: "Numer zgłoszenia",
    reason_code: "Przyczyna",
    for_developers: "Dla programistów",
    to_start_page: "Do strony głównej",

    form_post_title: "Chwileczkę",
    form_post_hint: "Trwa powrót do aplikacji. Jeśli nic się nie dzieje, proszę wybrać „Kontynuuj”.",
    form_post_continue: "Kontynuuj",

    home_title: "Usługa logowania",
    home_hint: Template("To jest {}. Ta usługa służy do logowania się do aplikacji."),
    home_advice: "Nie trzeba tu nic robić: proszę otworzyć aplikację, która ma zostać użyta, i tam wybrać logowanie.",
};

/// In the accusative, as after "odczekać". Numbers that end in 2 to 4 take a form of their own, but 12 to 14 do not.
fn minutes(count: u32) -> String {
    match (count, count % 10, count % 100) {
        (1, _, _) => String::from("1 minutę"),
        (_, 2..=4, 0..=11 | 15..) => format!("{count} minuty"),
        (_, _, _) => format!("{count} minut"),
    }
}
