//! Japanese, in the polite form.

use crate::pages::language::Language;
use crate::pages::texts::{ScopeText, Template, Texts};

/// The Japanese table.
pub const JAPANESE: Texts = Texts {
    language: Language::Japanese,

    error_in_title: Template("エラー：{}"),
    about_this_service: "このサービスについて",
    privacy_policy: "プライバシーポリシー",
    terms_of_service: "利用規約",
    website: "ウェブサイト",
    about_client: Template("{} について"),
    opens_in_new_tab: "（新しいタブで開きます）",
    there_is_a_problem: "問題が発生しました",
    cancel: "キャンセル",
    minutes,

    sign_in_title: "ログイン",
    to_continue_to: Template("{} に進みます"),
    with_account_of_tenant: Template("{} のアカウントを使用します"),
    username: "ユーザー名",
    password: "パスワード",
    sign_in: "ログイン",
    wrong_credentials: "ユーザー名またはパスワードが正しくありません。両方をご確認のうえ、もう一度お試しください。",
    too_many_attempts: Template("ログインの失敗が続いています。{}お待ちになってから、もう一度お試しください。"),
    page_expired: "このページの有効期限が切れていたため、ログインできませんでした。もう一度お試しください。",
    username_missing: "ユーザー名を入力してください。",
    password_missing: "パスワードを入力してください。",
    choose_account_title: "アカウントの選択",
    signed_in_here_as: Template("現在、{} としてログインしています。"),
    continue_as: Template("{} として続行"),
    use_another_account: "別のアカウントを使用",

    consent_title: "アクセスを許可しますか？",
    client_asks_for_access: Template("{} がアクセスを求めています"),
    signed_in_as: Template("{} としてログインしています。"),
    not_you: "ご本人ではありませんか？",
    scopes_legend: "要求されているアクセス",
    scope_required: "常に含まれます",
    scope_required_hint: "これがないと、アプリケーションは動作しません。",
    scope_emphasized: "ご注意ください",
    claims_heading: "アプリケーションは次の情報も求めています",
    remember: "この選択を保存する",
    remember_hint: "アプリケーションがさらに多くのアクセスを求める場合にのみ、再度確認します。",
    consent_hint: Template("{} を信頼できる場合にのみ許可してください。パスワードが共有されることはありません。"),
    allow: "許可",
    deny: "許可しない",
    session_changed: "このページを開いている間に、このブラウザーのログイン状態が変わったため、操作は行われませんでした。もう一度ご確認ください。",
    standard_scopes: [
        ScopeText {
            scope: "openid", name: "ご本人の識別", description: "お使いのアカウントを表す識別子です。"
        },
        ScopeText {
            scope: "profile",
            name: "プロフィールの表示",
            description: "お名前と、登録されている場合は写真、生年月日、言語などの情報です。",
        },
        ScopeText {
            scope: "email",
            name: "メールアドレスの表示",
            description: "メールアドレスと、それが確認済みかどうかです。",
        },
        ScopeText {
            scope: "address", name: "住所の表示", description: "アカウントに登録されている住所です。"
        },
        ScopeText {
            scope: "phone", name: "電話番号の表示", description: "電話番号と、それが確認済みかどうかです。"
        },
        ScopeText {
            scope: "offline_access",
            name: "ご利用中でないときのアクセス",
            description: "アプリケーションは、お客様が使用していないときも、許可が取り消されるまで、ここで許可された内容を利用できます。",
        },
    ],
    standard_claims: [
        ("name", "氏名"),
        ("given_name", "名"),
        ("family_name", "姓"),
        ("middle_name", "ミドルネーム"),
        ("nickname", "ニックネーム"),
        ("preferred_username", "希望するユーザー名"),
        ("profile", "プロフィールページ"),
        ("picture", "写真"),
        ("website", "ウェブサイト"),
        ("email", "メールアドレス"),
        ("email_verified", "メールアドレスが確認済みかどうか"),
        ("gender", "性別"),
        ("birthdate", "生年月日"),
        ("zoneinfo", "タイムゾーン"),
        ("locale", "言語と地域"),
        ("phone_number", "電話番号"),
        ("phone_number_verified", "電話番号が確認済みかどうか"),
        ("address", "住所"),
        ("updated_at", "情報の最終更新日時"),
    ],

    sign_out_title: "ログアウトしますか？",
    client_asks_to_sign_out: Template("{} がログアウトを求めています。"),
    sign_out_hint: "ログアウトすると、ここと、このブラウザーで同じログインを使用しているアプリケーションのログインが終了します。",
    sign_out: "ログアウト",
    stay_signed_in: "ログインしたままにする",
    signed_out_title: "ログアウトしました",
    signed_out_hint: "この端末をほかの方も使用する場合は、ブラウザーのウィンドウもすべて閉じてください。",
    back_to_client: Template("{} に戻る"),

    bad_request: "このリクエストは処理できません",
    bad_request_advice: "アプリケーションに戻り、最初からやり直してください。このページが再び表示される場合は、アプリケーションの開発者が、このページに至るリンクまたはフォームを修正する必要があります。",
    forbidden: "この操作は許可されていません",
    forbidden_advice: "フォームが当サービスのページから送信されていないか、ページの有効期限が切れています。アプリケーションに戻り、最初からやり直してください。",
    not_found: "ページが見つかりません",
    not_found_advice: "アドレスをご確認いただくか、ご利用になるアプリケーションから始めてください。",
    method_not_allowed: "このページはこの方法では利用できません",
    method_not_allowed_advice: "ご利用になるアプリケーションから、もう一度始めてください。",
    too_large: "一度に送信されたデータが多すぎます",
    too_large_advice: "前のページに戻り、最初からやり直してください。このページが再び表示される場合は、アプリケーションが受け入れ可能な量を超えるデータを送信しています。",
    too_many_requests: "試行回数が多すぎます",
    too_many_requests_advice: Template("アカウントを保護するため、{}お待ちになってから、もう一度お試しください。"),
    internal: "当サービスで問題が発生しました",
    internal_advice: "お客様の操作が原因ではありません。しばらくしてから、もう一度お試しください。",
    unavailable: "現在、応答できません",
    unavailable_advice: "まもなく復旧する見込みです。しばらくお待ちになってから、もう一度お試しください。",
    support_hint: "お問い合わせの際は、次の情報をお伝えください。",
    reference: "参照番号",
    reason_code: "理由",
    for_developers: "開発者向け",
    to_start_page: "スタートページへ",

    form_post_title: "少々お待ちください",
    form_post_hint: "アプリケーションに戻ります。画面が変わらない場合は、「続行」を選択してください。",
    form_post_continue: "続行",

    home_title: "ログインサービス",
    home_hint: Template("{} へようこそ。お使いのアプリケーションへのログインを行うサービスです。"),
    home_advice: "ここで行う操作はありません。ご利用になるアプリケーションを開き、そちらからログインしてください。",
};

fn minutes(count: u32) -> String {
    format!("{count} 分")
}
