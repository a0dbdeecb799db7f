// Texts to click on, in the languages that a vocabulary has.

const MANY = 0.65; // of a vocabulary: then it is of one language
const KANA = 0.1; // with that much of it, Chinese characters are Japanese ones

/**
 * Of each language five times: a text, one to compare it with, a question that it answers, and the
 * word of it to hide. Each text has names and a mood, so that every panel has something to find.
 */
const TEXTS = {
  en: [
    ["Sofia from Lisbon loved the film, and the ending made her cry.", "Sofia enjoyed the movie.", "Where does Sofia come from?", "film"],
    ["The hotel in Rome was dirty, and nobody answered the phone.", "The hotel was clean and quiet.", "In which city was the hotel?", "hotel"],
    ["Doctor Tanaka opened a small hospital in Kyoto last spring.", "There is a new clinic in Japan.", "Who opened the hospital?", "hospital"],
    ["My new phone from Samsung stopped working after two days.", "The phone broke very soon.", "When did the phone stop working?", "phone"],
    ["Anna and Ben walked through Berlin in the rain and were happy.", "It was a dry day in Berlin.", "Who walked through Berlin?", "rain"],
  ],
  ko: [
    ["부산에서 온 지수는 그 영화를 보고 감동해서 울었다.", "지수는 영화가 마음에 들었다.", "지수는 어디에서 왔는가?", "영화를"],
    ["서울의 그 호텔은 더럽고 직원도 불친절했다.", "호텔은 깨끗하고 조용했다.", "호텔은 어느 도시에 있는가?", "직원도"],
    ["김민준 박사는 지난봄 대전에 작은 병원을 열었다.", "대전에 새 병원이 생겼다.", "누가 병원을 열었는가?", "병원을"],
    ["삼성에서 산 새 전화기가 이틀 만에 고장 났다.", "전화기가 금방 망가졌다.", "전화기는 언제 고장 났는가?", "전화기가"],
    ["민수와 영희는 비를 맞으며 제주를 걸었고 행복했다.", "제주는 맑은 날이었다.", "누가 제주를 걸었는가?", "비를"],
  ],
  zh: [
    ["来自上海的王芳非常喜欢这部电影，结尾让她哭了。", "王芳觉得电影很好看。", "王芳来自哪里？", "影"],
    ["北京的那家酒店很脏，也没有人接电话。", "酒店又干净又安静。", "酒店在哪个城市？", "话"],
    ["李明医生去年春天在广州开了一家小医院。", "广州有了一家新医院。", "谁开了医院？", "院"],
    ["我从华为买的新手机两天后就坏了。", "手机很快就不能用了。", "手机什么时候坏了？", "机"],
    ["小红和小刚在雨中走过南京，他们很高兴。", "那天南京是晴天。", "谁走过南京？", "雨"],
  ],
  ja: [
    ["大阪から来た花子はその映画が大好きで、最後に泣いた。", "花子は映画を楽しんだ。", "花子はどこから来たか？", "映画"],
    ["京都のホテルは汚く、誰も電話に出なかった。", "ホテルは清潔で静かだった。", "ホテルはどの町にあるか？", "電話"],
    ["田中医師は去年の春、札幌に小さな病院を開いた。", "札幌に新しい病院ができた。", "誰が病院を開いたか？", "病院"],
    ["ソニーの新しい電話は二日で壊れてしまった。", "電話はすぐに壊れた。", "電話はいつ壊れたか？", "電話"],
    ["太郎と由美は雨の東京を歩いて、幸せだった。", "東京は晴れていた。", "誰が東京を歩いたか？", "雨"],
  ],
  ru: [
    ["Анна из Москвы полюбила этот фильм и в конце плакала.", "Анне понравилось кино.", "Откуда Анна?", "фильм"],
    ["Гостиница в Казани была грязной, и никто не отвечал на звонки.", "В гостинице было чисто и тихо.", "В каком городе гостиница?", "грязной"],
    ["Доктор Иванов прошлой весной открыл в Туле маленькую больницу.", "В Туле появилась новая клиника.", "Кто открыл больницу?", "больницу"],
    ["Мой новый телефон от Самсунг сломался через два дня.", "Телефон сломался очень скоро.", "Когда сломался телефон?", "телефон"],
    ["Ольга и Иван гуляли под дождём по Омску и были счастливы.", "В Омске был солнечный день.", "Кто гулял по Омску?", "дождём"],
  ],
  hi: [
    ["मुंबई की सीता को यह फ़िल्म बहुत पसंद आई और वह अंत में रो पड़ी।", "सीता को फ़िल्म अच्छी लगी।", "सीता कहाँ की है?", "फ़िल्म"],
    ["दिल्ली का होटल गंदा था और किसी ने फ़ोन नहीं उठाया।", "होटल साफ़ और शांत था।", "होटल किस शहर में था?", "फ़ोन"],
    ["डॉक्टर शर्मा ने जयपुर में एक छोटा अस्पताल खोला।", "जयपुर में नया अस्पताल बना।", "अस्पताल किसने खोला?", "अस्पताल"],
    ["सैमसंग का मेरा नया फ़ोन दो दिन में ख़राब हो गया।", "फ़ोन जल्दी टूट गया।", "फ़ोन कब ख़राब हुआ?", "फ़ोन"],
    ["राम और मीरा बारिश में आगरा घूमे और ख़ुश थे।", "आगरा में धूप थी।", "आगरा में कौन घूमा?", "बारिश"],
  ],
  ar: [
    ["أحبت ليلى من القاهرة هذا الفيلم وبكت في النهاية.", "أعجب الفيلم ليلى.", "من أين ليلى؟", "الفيلم"],
    ["كان الفندق في بيروت قذرا ولم يرد أحد على الهاتف.", "كان الفندق نظيفا وهادئا.", "في أي مدينة كان الفندق؟", "الهاتف"],
    ["افتتح الدكتور حسن مستشفى صغيرا في عمان الربيع الماضي.", "في عمان عيادة جديدة.", "من افتتح المستشفى؟", "مستشفى"],
    ["توقف هاتفي الجديد من سامسونج عن العمل بعد يومين.", "تعطل الهاتف سريعا.", "متى توقف الهاتف عن العمل؟", "هاتفي"],
    ["سارت مريم ويوسف تحت المطر في دمشق وكانا سعيدين.", "كان يوما مشمسا في دمشق.", "من سار في دمشق؟", "المطر"],
  ],
};

const LANGUAGES = { LATIN: "en", HANGUL: "ko", CYRILLIC: "ru", DEVANAGARI: "hi", ARABIC: "ar" };

/** The languages of a vocabulary. @param {Object<string, number>} scripts the share that each has of it. */
function languagesOf(scripts) {
  const japanese = (scripts.HIRAGANA ?? 0) + (scripts.KATAKANA ?? 0) > KANA;
  const known = { ...LANGUAGES, CJK: japanese ? "ja" : "zh" };
  const found = Object.entries(scripts).filter(([script]) => known[script]);
  const [most] = found.sort((one, other) => other[1] - one[1]);
  if (japanese) return ["ja"];
  if (!most || most[1] > MANY) return [known[most?.[0]] ?? "en"];
  return found.map(([script]) => known[script]);
}

/**
 * Five inputs of a panel, each with the text that names it.
 * @param {Object} panel with its id, the kind of its signature, its fields, and whether it takes many texts.
 * @returns {{name: string, texts: Object<string, string>}[]}
 */
export function examplesOf({ id, signature, fields, manyTexts }, scripts) {
  const languages = languagesOf(scripts);
  return TEXTS.en.map((_, number) => {
    const texts = TEXTS[languages[number % languages.length]];
    const [own, ...others] = [...texts.slice(number), ...texts.slice(0, number)];
    const [text, second, question, hidden] = own;
    if (id === "map") return mapExample(fields, [own, ...others].slice(0, number ? 3 : 5));
    const masked = signature.kind === "masked_words" ? text.replace(hidden, "[MASK]") : text;
    const main = manyTexts ? [text, second, ...others[0].slice(0, 2)].join("\n") : masked;
    const endings = [own, ...others.slice(0, 3)].map((one) => one[1]).join("\n");
    const beside = { question, text_b: second, endings };
    const needed = fields.filter((field) => field.needed);
    return { name: main.split("\n")[0], texts: Object.fromEntries(needed.map(({ name }) => [name, beside[name] ?? main])) };
  });
}

/** What the texts of each row are about is their label. */
function mapExample([{ name }], rows) {
  const lines = rows.flatMap(([text, second, question, label]) => [text, second, question].map((line) => `${label}\t${line}`));
  return { name: rows.map(([, , , label]) => label).join(", "), texts: { [name]: lines.join("\n") } };
}
