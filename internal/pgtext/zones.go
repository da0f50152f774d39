package pgtext

import (
	"sort"
	"strings"
	"sync"
	"time"
)

type zoneAbbrev struct {
	off int // seconds east of UTC
	dst bool
}

// AbbrevOffset returns the seconds east of UTC that a zone abbreviation (in any
// case) stands for, and whether it is daylight saving time.
func AbbrevOffset(name string) (off int, dst, ok bool) {
	a, ok := zoneAbbrevs[strings.ToLower(name)]
	return a.off, a.dst, ok
}

var (
	zonesOnce sync.Once
	zonesBy   map[string]string // lower case to IANA name
	zoneCache sync.Map          // lower case to *time.Location
)

// ZoneNames returns the names that LoadZone knows, sorted.
func ZoneNames() []string { return strings.Fields(zoneNames) }

// LoadZone finds a time zone by IANA name in any case, or by a POSIX form such
// as EST5 or <+03>-3 (hours west of UTC).
func LoadZone(name string) (*time.Location, bool) {
	zonesOnce.Do(func() {
		zonesBy = map[string]string{}
		for _, n := range strings.Fields(zoneNames) {
			zonesBy[strings.ToLower(n)] = n
		}
	})
	low := strings.ToLower(name)
	if l, ok := zoneCache.Load(low); ok {
		return l.(*time.Location), true
	}
	if n, ok := zonesBy[low]; ok {
		if l, err := time.LoadLocation(n); err == nil {
			zoneCache.Store(low, l)
			return l, true
		}
	}
	return posixZone(name)
}

// posixZone reads name[+-]hh[:mm[:ss]], hours west of UTC.
func posixZone(s string) (*time.Location, bool) {
	i := 0
	abbrev := ""
	if s != "" && s[0] == '<' {
		end := strings.IndexByte(s, '>')
		if end < 0 {
			return nil, false
		}
		abbrev = s[1:end]
		i = end + 1
	} else {
		for i < len(s) && isAlpha(s[i]) {
			i++
		}
		abbrev = s[:i]
		if i < 1 {
			return nil, false
		}
	}
	if i >= len(s) {
		return nil, false
	}
	sign := 1
	if s[i] == '+' || s[i] == '-' {
		if s[i] == '-' {
			sign = -1
		}
		i++
	}
	var v [3]int
	for k := 0; k < 3; k++ {
		n, rest, over := num(s[i:])
		if over || len(rest) == len(s[i:]) || n < 0 || n > 167 || k > 0 && n > 59 {
			return nil, false
		}
		v[k] = n
		i = len(s) - len(rest)
		if i == len(s) {
			break
		}
		if s[i] != ':' {
			return nil, false
		}
		i++
	}
	west := sign * (v[0]*3600 + v[1]*60 + v[2])
	return time.FixedZone(strings.ToUpper(abbrev), -west), true
}

// ZoneAbbrevs lists the abbreviations, sorted, in upper case.
func ZoneAbbrevs() []string {
	out := make([]string, 0, len(zoneAbbrevs))
	for n := range zoneAbbrevs {
		out = append(out, strings.ToUpper(n))
	}
	sort.Strings(out)
	return out
}

// zoneAbbrevs are the abbreviations of PostgreSQL's default set.
var zoneAbbrevs = map[string]zoneAbbrev{
	"acdt":   {37800, true},
	"acsst":  {37800, true},
	"acst":   {34200, false},
	"act":    {-18000, false},
	"acwst":  {31500, false},
	"adt":    {-10800, true},
	"aedt":   {39600, true},
	"aesst":  {39600, true},
	"aest":   {36000, false},
	"aft":    {16200, false},
	"akdt":   {-28800, true},
	"akst":   {-32400, false},
	"almst":  {25200, true},
	"almt":   {21600, false},
	"amst":   {14400, false},
	"amt":    {-14400, false},
	"anast":  {43200, false},
	"anat":   {43200, false},
	"arst":   {-10800, false},
	"art":    {-10800, false},
	"ast":    {-14400, false},
	"awsst":  {32400, true},
	"awst":   {28800, false},
	"azost":  {0, true},
	"azot":   {-3600, false},
	"azst":   {14400, false},
	"azt":    {14400, false},
	"bdst":   {7200, true},
	"bdt":    {21600, false},
	"bnt":    {28800, false},
	"bort":   {28800, false},
	"bot":    {-14400, false},
	"bra":    {-10800, false},
	"brst":   {-7200, true},
	"brt":    {-10800, false},
	"bst":    {3600, true},
	"btt":    {21600, false},
	"cadt":   {37800, true},
	"cast":   {34200, false},
	"cct":    {28800, false},
	"cdt":    {-18000, true},
	"cest":   {7200, true},
	"cet":    {3600, false},
	"cetdst": {7200, true},
	"chadt":  {49500, true},
	"chast":  {45900, false},
	"chut":   {36000, false},
	"ckt":    {-36000, false},
	"clst":   {-10800, true},
	"clt":    {-10800, true},
	"cot":    {-18000, false},
	"cst":    {-21600, false},
	"cxt":    {25200, false},
	"davt":   {25200, false},
	"ddut":   {36000, false},
	"easst":  {-18000, true},
	"east":   {-18000, true},
	"eat":    {10800, false},
	"edt":    {-14400, true},
	"eest":   {10800, true},
	"eet":    {7200, false},
	"eetdst": {10800, true},
	"egst":   {0, true},
	"egt":    {-3600, false},
	"est":    {-18000, false},
	"fet":    {10800, false},
	"fjst":   {46800, true},
	"fjt":    {43200, false},
	"fkst":   {-10800, false},
	"fkt":    {-10800, false},
	"fnst":   {-3600, true},
	"fnt":    {-7200, false},
	"galt":   {-21600, false},
	"gamt":   {-32400, false},
	"gest":   {14400, false},
	"get":    {14400, false},
	"gft":    {-10800, false},
	"gilt":   {43200, false},
	"gmt":    {0, false},
	"gyt":    {-14400, false},
	"hkt":    {28800, false},
	"hst":    {-36000, false},
	"ict":    {25200, false},
	"idt":    {10800, true},
	"iot":    {21600, false},
	"irkst":  {28800, false},
	"irkt":   {28800, false},
	"irt":    {12600, false},
	"ist":    {7200, false},
	"jayt":   {32400, false},
	"jst":    {32400, false},
	"kdt":    {36000, true},
	"kgst":   {21600, true},
	"kgt":    {21600, false},
	"kost":   {39600, false},
	"krast":  {25200, false},
	"krat":   {25200, false},
	"kst":    {32400, false},
	"lhdt":   {39600, true},
	"lhst":   {37800, false},
	"ligt":   {36000, false},
	"lint":   {50400, false},
	"lkt":    {19800, false},
	"magst":  {39600, false},
	"magt":   {39600, false},
	"mart":   {-34200, false},
	"mawt":   {18000, false},
	"mdt":    {-21600, true},
	"mest":   {7200, true},
	"mesz":   {7200, true},
	"met":    {3600, false},
	"metdst": {7200, true},
	"mez":    {3600, false},
	"mht":    {43200, false},
	"mmt":    {23400, false},
	"mpt":    {36000, false},
	"msd":    {14400, true},
	"msk":    {10800, false},
	"mst":    {-25200, false},
	"must":   {18000, true},
	"mut":    {14400, false},
	"mvt":    {18000, false},
	"myt":    {28800, false},
	"ndt":    {-9000, true},
	"nft":    {-12600, false},
	"novst":  {25200, false},
	"novt":   {25200, false},
	"npt":    {20700, false},
	"nst":    {-12600, false},
	"nut":    {-39600, false},
	"nzdt":   {46800, true},
	"nzst":   {43200, false},
	"nzt":    {43200, false},
	"omsst":  {21600, false},
	"omst":   {21600, false},
	"pdt":    {-25200, true},
	"pet":    {-18000, false},
	"petst":  {43200, false},
	"pett":   {43200, false},
	"pgt":    {36000, false},
	"pht":    {28800, false},
	"pkst":   {21600, true},
	"pkt":    {18000, false},
	"pmdt":   {-7200, true},
	"pmst":   {-10800, false},
	"pont":   {39600, false},
	"pst":    {-28800, false},
	"pwt":    {32400, false},
	"pyst":   {-10800, true},
	"pyt":    {-10800, false},
	"ret":    {14400, false},
	"sadt":   {37800, true},
	"sast":   {7200, false},
	"sct":    {14400, false},
	"sgt":    {28800, false},
	"taht":   {-36000, false},
	"tft":    {18000, false},
	"tjt":    {18000, false},
	"tkt":    {46800, false},
	"tmt":    {18000, false},
	"tot":    {46800, false},
	"trut":   {36000, false},
	"tvt":    {43200, false},
	"uct":    {0, false},
	"ulast":  {32400, true},
	"ulat":   {28800, false},
	"ut":     {0, false},
	"utc":    {0, false},
	"uyst":   {-7200, true},
	"uyt":    {-10800, false},
	"uzst":   {21600, true},
	"uzt":    {18000, false},
	"vet":    {-14400, false},
	"vlast":  {36000, false},
	"vlat":   {36000, false},
	"volt":   {10800, false},
	"vut":    {39600, false},
	"wadt":   {28800, true},
	"wakt":   {43200, false},
	"wast":   {25200, false},
	"wat":    {3600, false},
	"wdt":    {32400, true},
	"wet":    {0, false},
	"wetdst": {3600, true},
	"wft":    {43200, false},
	"wgst":   {-7200, true},
	"wgt":    {-10800, false},
	"xjt":    {21600, false},
	"yakst":  {32400, false},
	"yakt":   {32400, false},
	"yapt":   {36000, false},
	"yekst":  {21600, true},
	"yekt":   {18000, false},
	"z":      {0, false},
	"zulu":   {0, false},
}

// zoneNames are the names of the IANA database.
const zoneNames = `
Africa/Abidjan Africa/Accra Africa/Addis_Ababa Africa/Algiers Africa/Asmara Africa/Asmera Africa/Bamako Africa/Bangui Africa/Banjul Africa/Bissau 
Africa/Blantyre Africa/Brazzaville Africa/Bujumbura Africa/Cairo Africa/Casablanca Africa/Ceuta Africa/Conakry Africa/Dakar Africa/Dar_es_Salaam 
Africa/Djibouti Africa/Douala Africa/El_Aaiun Africa/Freetown Africa/Gaborone Africa/Harare Africa/Johannesburg Africa/Juba Africa/Kampala 
Africa/Khartoum Africa/Kigali Africa/Kinshasa Africa/Lagos Africa/Libreville Africa/Lome Africa/Luanda Africa/Lubumbashi Africa/Lusaka Africa/Malabo 
Africa/Maputo Africa/Maseru Africa/Mbabane Africa/Mogadishu Africa/Monrovia Africa/Nairobi Africa/Ndjamena Africa/Niamey Africa/Nouakchott 
Africa/Ouagadougou Africa/Porto-Novo Africa/Sao_Tome Africa/Timbuktu Africa/Tripoli Africa/Tunis Africa/Windhoek America/Adak America/Anchorage 
America/Anguilla America/Antigua America/Araguaina America/Argentina/Buenos_Aires America/Argentina/Catamarca America/Argentina/ComodRivadavia 
America/Argentina/Cordoba America/Argentina/Jujuy America/Argentina/La_Rioja America/Argentina/Mendoza America/Argentina/Rio_Gallegos 
America/Argentina/Salta America/Argentina/San_Juan America/Argentina/San_Luis America/Argentina/Tucuman America/Argentina/Ushuaia America/Aruba 
America/Asuncion America/Atikokan America/Atka America/Bahia America/Bahia_Banderas America/Barbados America/Belem America/Belize 
America/Blanc-Sablon America/Boa_Vista America/Bogota America/Boise America/Buenos_Aires America/Cambridge_Bay America/Campo_Grande America/Cancun 
America/Caracas America/Catamarca America/Cayenne America/Cayman America/Chicago America/Chihuahua America/Ciudad_Juarez America/Coral_Harbour 
America/Cordoba America/Costa_Rica America/Coyhaique America/Creston America/Cuiaba America/Curacao America/Danmarkshavn America/Dawson 
America/Dawson_Creek America/Denver America/Detroit America/Dominica America/Edmonton America/Eirunepe America/El_Salvador America/Ensenada 
America/Fort_Nelson America/Fort_Wayne America/Fortaleza America/Glace_Bay America/Godthab America/Goose_Bay America/Grand_Turk America/Grenada 
America/Guadeloupe America/Guatemala America/Guayaquil America/Guyana America/Halifax America/Havana America/Hermosillo America/Indiana/Indianapolis 
America/Indiana/Knox America/Indiana/Marengo America/Indiana/Petersburg America/Indiana/Tell_City America/Indiana/Vevay America/Indiana/Vincennes 
America/Indiana/Winamac America/Indianapolis America/Inuvik America/Iqaluit America/Jamaica America/Jujuy America/Juneau America/Kentucky/Louisville 
America/Kentucky/Monticello America/Knox_IN America/Kralendijk America/La_Paz America/Lima America/Los_Angeles America/Louisville 
America/Lower_Princes America/Maceio America/Managua America/Manaus America/Marigot America/Martinique America/Matamoros America/Mazatlan 
America/Mendoza America/Menominee America/Merida America/Metlakatla America/Mexico_City America/Miquelon America/Moncton America/Monterrey 
America/Montevideo America/Montreal America/Montserrat America/Nassau America/New_York America/Nipigon America/Nome America/Noronha 
America/North_Dakota/Beulah America/North_Dakota/Center America/North_Dakota/New_Salem America/Nuuk America/Ojinaga America/Panama 
America/Pangnirtung America/Paramaribo America/Phoenix America/Port-au-Prince America/Port_of_Spain America/Porto_Acre America/Porto_Velho 
America/Puerto_Rico America/Punta_Arenas America/Rainy_River America/Rankin_Inlet America/Recife America/Regina America/Resolute America/Rio_Branco 
America/Rosario America/Santa_Isabel America/Santarem America/Santiago America/Santo_Domingo America/Sao_Paulo America/Scoresbysund America/Shiprock 
America/Sitka America/St_Barthelemy America/St_Johns America/St_Kitts America/St_Lucia America/St_Thomas America/St_Vincent America/Swift_Current 
America/Tegucigalpa America/Thule America/Thunder_Bay America/Tijuana America/Toronto America/Tortola America/Vancouver America/Virgin 
America/Whitehorse America/Winnipeg America/Yakutat America/Yellowknife Antarctica/Casey Antarctica/Davis Antarctica/DumontDUrville 
Antarctica/Macquarie Antarctica/Mawson Antarctica/McMurdo Antarctica/Palmer Antarctica/Rothera Antarctica/South_Pole Antarctica/Syowa 
Antarctica/Troll Antarctica/Vostok Arctic/Longyearbyen Asia/Aden Asia/Almaty Asia/Amman Asia/Anadyr Asia/Aqtau Asia/Aqtobe Asia/Ashgabat 
Asia/Ashkhabad Asia/Atyrau Asia/Baghdad Asia/Bahrain Asia/Baku Asia/Bangkok Asia/Barnaul Asia/Beirut Asia/Bishkek Asia/Brunei Asia/Calcutta 
Asia/Chita Asia/Choibalsan Asia/Chongqing Asia/Chungking Asia/Colombo Asia/Dacca Asia/Damascus Asia/Dhaka Asia/Dili Asia/Dubai Asia/Dushanbe 
Asia/Famagusta Asia/Gaza Asia/Harbin Asia/Hebron Asia/Ho_Chi_Minh Asia/Hong_Kong Asia/Hovd Asia/Irkutsk Asia/Istanbul Asia/Jakarta Asia/Jayapura 
Asia/Jerusalem Asia/Kabul Asia/Kamchatka Asia/Karachi Asia/Kashgar Asia/Kathmandu Asia/Katmandu Asia/Khandyga Asia/Kolkata Asia/Krasnoyarsk 
Asia/Kuala_Lumpur Asia/Kuching Asia/Kuwait Asia/Macao Asia/Macau Asia/Magadan Asia/Makassar Asia/Manila Asia/Muscat Asia/Nicosia Asia/Novokuznetsk 
Asia/Novosibirsk Asia/Omsk Asia/Oral Asia/Phnom_Penh Asia/Pontianak Asia/Pyongyang Asia/Qatar Asia/Qostanay Asia/Qyzylorda Asia/Rangoon Asia/Riyadh 
Asia/Saigon Asia/Sakhalin Asia/Samarkand Asia/Seoul Asia/Shanghai Asia/Singapore Asia/Srednekolymsk Asia/Taipei Asia/Tashkent Asia/Tbilisi 
Asia/Tehran Asia/Tel_Aviv Asia/Thimbu Asia/Thimphu Asia/Tokyo Asia/Tomsk Asia/Ujung_Pandang Asia/Ulaanbaatar Asia/Ulan_Bator Asia/Urumqi 
Asia/Ust-Nera Asia/Vientiane Asia/Vladivostok Asia/Yakutsk Asia/Yangon Asia/Yekaterinburg Asia/Yerevan Atlantic/Azores Atlantic/Bermuda 
Atlantic/Canary Atlantic/Cape_Verde Atlantic/Faeroe Atlantic/Faroe Atlantic/Jan_Mayen Atlantic/Madeira Atlantic/Reykjavik Atlantic/South_Georgia 
Atlantic/St_Helena Atlantic/Stanley Australia/ACT Australia/Adelaide Australia/Brisbane Australia/Broken_Hill Australia/Canberra Australia/Currie 
Australia/Darwin Australia/Eucla Australia/Hobart Australia/LHI Australia/Lindeman Australia/Lord_Howe Australia/Melbourne Australia/NSW 
Australia/North Australia/Perth Australia/Queensland Australia/South Australia/Sydney Australia/Tasmania Australia/Victoria Australia/West 
Australia/Yancowinna Brazil/Acre Brazil/DeNoronha Brazil/East Brazil/West CET CST6CDT Canada/Atlantic Canada/Central Canada/Eastern Canada/Mountain 
Canada/Newfoundland Canada/Pacific Canada/Saskatchewan Canada/Yukon Chile/Continental Chile/EasterIsland Cuba EET EST EST5EDT Egypt Eire Etc/GMT 
Etc/GMT+0 Etc/GMT+1 Etc/GMT+10 Etc/GMT+11 Etc/GMT+12 Etc/GMT+2 Etc/GMT+3 Etc/GMT+4 Etc/GMT+5 Etc/GMT+6 Etc/GMT+7 Etc/GMT+8 Etc/GMT+9 Etc/GMT-0 
Etc/GMT-1 Etc/GMT-10 Etc/GMT-11 Etc/GMT-12 Etc/GMT-13 Etc/GMT-14 Etc/GMT-2 Etc/GMT-3 Etc/GMT-4 Etc/GMT-5 Etc/GMT-6 Etc/GMT-7 Etc/GMT-8 Etc/GMT-9 
Etc/GMT0 Etc/Greenwich Etc/UCT Etc/UTC Etc/Universal Etc/Zulu Europe/Amsterdam Europe/Andorra Europe/Astrakhan Europe/Athens Europe/Belfast 
Europe/Belgrade Europe/Berlin Europe/Bratislava Europe/Brussels Europe/Bucharest Europe/Budapest Europe/Busingen Europe/Chisinau Europe/Copenhagen 
Europe/Dublin Europe/Gibraltar Europe/Guernsey Europe/Helsinki Europe/Isle_of_Man Europe/Istanbul Europe/Jersey Europe/Kaliningrad Europe/Kiev 
Europe/Kirov Europe/Kyiv Europe/Lisbon Europe/Ljubljana Europe/London Europe/Luxembourg Europe/Madrid Europe/Malta Europe/Mariehamn Europe/Minsk 
Europe/Monaco Europe/Moscow Europe/Nicosia Europe/Oslo Europe/Paris Europe/Podgorica Europe/Prague Europe/Riga Europe/Rome Europe/Samara 
Europe/San_Marino Europe/Sarajevo Europe/Saratov Europe/Simferopol Europe/Skopje Europe/Sofia Europe/Stockholm Europe/Tallinn Europe/Tirane 
Europe/Tiraspol Europe/Ulyanovsk Europe/Uzhgorod Europe/Vaduz Europe/Vatican Europe/Vienna Europe/Vilnius Europe/Volgograd Europe/Warsaw 
Europe/Zagreb Europe/Zaporozhye Europe/Zurich GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Indian/Antananarivo Indian/Chagos 
Indian/Christmas Indian/Cocos Indian/Comoro Indian/Kerguelen Indian/Mahe Indian/Maldives Indian/Mauritius Indian/Mayotte Indian/Reunion Iran Israel 
Jamaica Japan Kwajalein Libya MET MST MST7MDT Mexico/BajaNorte Mexico/BajaSur Mexico/General NZ NZ-CHAT Navajo PRC PST8PDT Pacific/Apia 
Pacific/Auckland Pacific/Bougainville Pacific/Chatham Pacific/Chuuk Pacific/Easter Pacific/Efate Pacific/Enderbury Pacific/Fakaofo Pacific/Fiji 
Pacific/Funafuti Pacific/Galapagos Pacific/Gambier Pacific/Guadalcanal Pacific/Guam Pacific/Honolulu Pacific/Johnston Pacific/Kanton 
Pacific/Kiritimati Pacific/Kosrae Pacific/Kwajalein Pacific/Majuro Pacific/Marquesas Pacific/Midway Pacific/Nauru Pacific/Niue Pacific/Norfolk 
Pacific/Noumea Pacific/Pago_Pago Pacific/Palau Pacific/Pitcairn Pacific/Pohnpei Pacific/Ponape Pacific/Port_Moresby Pacific/Rarotonga Pacific/Saipan 
Pacific/Samoa Pacific/Tahiti Pacific/Tarawa Pacific/Tongatapu Pacific/Truk Pacific/Wake Pacific/Wallis Pacific/Yap Poland Portugal ROC ROK Singapore 
Turkey UCT US/Alaska US/Aleutian US/Arizona US/Central US/East-Indiana US/Eastern US/Hawaii US/Indiana-Starke US/Michigan US/Mountain US/Pacific 
US/Samoa UTC Universal W-SU WET Zulu `
