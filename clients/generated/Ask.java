import java.nio.file.Files;
import java.nio.file.Path;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.DefaultApi;
import org.openapitools.client.model.Question;

/** Asks a server the questions of a file, and prints each answer as the generated classes hold it. */
class Ask {
  public static void main(String[] args) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(args[0]);
    DefaultApi api = new DefaultApi(client);
    for (String line : Files.readAllLines(Path.of(args[1]))) {
      Question question = client.getObjectMapper().readValue(line, Question.class);
      System.out.println(client.getObjectMapper().writeValueAsString(api.query(question, null, null)));
    }
    System.out.println(client.getObjectMapper().writeValueAsString(api.catalogue()));
    System.out.println(client.getObjectMapper().writeValueAsString(api.ready()));
  }
}
